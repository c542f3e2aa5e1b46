// Every piece of text that is seen, with its contrast against what lies behind it, and the least that WCAG AA asks for.
// Source: WCAG 2.2, relative luminance and contrast ratio; large text is 24 px, or 18.66 px in bold.
(() => {
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (one) => {
    for (let up = one; up; up = up.parentElement) {
      const colour = numbers(getComputedStyle(up).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || one.closest("noscript, script, .unseen, .skip")) continue;
    const style = getComputedStyle(one);
    const [high, low] = [luminance(numbers(style.color)), luminance(ground(one))].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    found.push({ text: one.textContent.slice(0, 40), ratio: (high + 0.05) / (low + 0.05), least: large ? 3 : 4.5 });
  }
  return JSON.stringify(found);
})();
