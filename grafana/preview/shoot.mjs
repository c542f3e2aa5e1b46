// node shoot.mjs URL FILE: the whole page as a picture; prints what was asked and what went wrong, as JSON.
import { chromium } from 'playwright-core';

const [url, file, executablePath] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath,
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'],
});
const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
const errors = [];
page.on('pageerror', (error) => errors.push(String(error.stack ?? error).slice(0, 600)));
await page.goto(url);
await page.waitForSelector('section, [data-viz-panel-key]', { timeout: 60_000 });
let seen = -1;
for (let quiet = 0; quiet < 4; ) {
  await page.waitForTimeout(750);
  const count = await page.evaluate(() => window.__asked.length);
  quiet = count === seen ? quiet + 1 : 0;
  seen = count;
}
const height = await page.evaluate(() => document.documentElement.scrollHeight);
await page.setViewportSize({ width: 1600, height });
await page.waitForTimeout(1500);
await page.screenshot({ path: file });
console.log(JSON.stringify({ asked: await page.evaluate(() => window.__asked), errors }));
await browser.close();
