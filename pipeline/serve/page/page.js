"use strict";
// Three tiers: all rates, a family (or all) with the sessions behind a number, a session. Everything that the API says is
// put in as text, never as markup. What is worst comes first, and no colour says anything that words do not say, too.

const EVERY_MS = 30_000;
const LATE_S = 600; // event time this far behind the clock is worth a word
const WINDOWS = { "1h": "hour", "6h": "6 hours", "24h": "24 hours", "7d": "7 days" };
// [title, what it says, what the numerator counts, what the rest is, whether lower is better]
const RATES = {
  completion: ["Completion", "what the customer came for is done, as the contract asks", "complete", "not complete", false],
  verified_completion: ["Verified completion", "done, and systems independent of the agent confirm it", "verified", "not verified", false],
  claimed_completion: ["Claimed completion", "the agent says that it is done, or answered and the customer left", "claimed", "not claimed", false],
  resolution: ["Resolution", "done, nobody came back, no person took over, nobody denied it", "resolved", "not resolved", false],
  reopen: ["Reopened", "claimed complete, and the customer came back", "reopened", "not reopened", true],
  escalation: ["Escalated", "a person took over", "escalated", "not escalated", true],
  containment: ["Contained", "no person was even called for, and the customer did not leave waiting", "contained", "not contained", false],
  confirmed_resolution: ["Confirmed by customers", "of those who answered, those who say it is done", "confirmed", "denied", false],
  tool_success: ["Tool calls that worked", "each call counts, whatever came of the session", "worked", "failed", false],
  attribution: ["With a conversation id", "sessions whose spans say which conversation they are of", "with an id", "without an id", false],
};
const PENDING = new Set(["completion", "verified_completion", "resolution"]);
const BADNESS = { bad: 0, warn: 1, good: 2, none: 3 };
const ENDS = { "": "still open", completed: "claimed complete", escalated: "with a person", failed: "in an error",
  claimed_failed: "the agent said it failed", timed_out: "waiting for a person", abandoned: "waiting for the customer",
  refused: "refused", invalid: "set aside as invalid", ended: "without a claim" };
const MARKS = { passed: ["✓ passed", "good"], failed: ["✗ failed", "bad"], error: ["✗ error", "bad"],
  pending: ["… waits", "warn"], not_applicable: ["– does not apply", ""] };
const $main = document.getElementById("main");
let turn = 0; // of two answers under way the later one is shown

// --- making elements

function el(name, options, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((one) => one !== null && one !== undefined && one !== ""));
  return made;
}
const link = (href, text, options) => el("a", { href, ...options }, text);
const path = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");
const percent = (one) => (one === null ? "–" : (100 * one).toFixed(1) + "\u00a0%");
const when = (text) => (text ? text.slice(0, 19).replace("T", " ") : "–");
const counted = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

function ago(seconds) {
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];
  const [size, name] = units.find(([size]) => seconds >= size) || units[3];
  return counted(Math.floor(seconds / size), name);
}

function table(caption, heads, rows) {
  // The roles say what a narrow screen's layout would take away.
  const row = (cells) => el("tr", { role: "row" }, cells.map((cell, index) => {
    const { text, ...options } = cell instanceof Node || typeof cell !== "object" ? { text: cell } : cell;
    return index ? el("td", { role: "cell", "data-name": heads[index], ...options }, text)
      : el("th", { role: "rowheader", scope: "row", ...options }, text);
  }));
  return el("table", { role: "table" }, el("caption", {}, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" },
      heads.map((head) => el("th", { scope: "col", role: "columnheader" }, head)))),
    el("tbody", { role: "rowgroup" }, rows.map(row)));
}

// --- asking

class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function ask(where, query) {
  const url = new URL(where, location.href);
  for (const [key, value] of Object.entries(query || {})) if (value) url.searchParams.set(key, value);
  const tenant = sessionStorage.getItem("tenant");
  if (tenant && where === "/api/sessions") url.searchParams.set("tenant", tenant);
  const token = sessionStorage.getItem("token");
  let answer;
  try {
    answer = await fetch(url, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  } catch {
    throw new Refused(0, "The worker does not answer. Is it running?");
  }
  const body = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, body.error || `The worker answers with ${answer.status}.`);
  return { ...body, clock: Date.parse(answer.headers.get("Date")) || Date.now() };
}

// --- a rate

function state(rate) {
  if (rate.ratio === null) return ["none", "nothing to tell yet"];
  if (rate.target === null) return ["none", "no target"];
  const low = RATES[rate.rate][4];
  const [worse, better] = low ? ["above", "below"] : ["below", "above"];
  const misses = low ? rate.ratio > rate.target : rate.ratio < rate.target;
  const surely = low ? rate.lower > rate.target : rate.upper < rate.target;
  if (surely) return ["bad", `✗ ${worse} target`];
  return misses ? ["warn", `! may be ${worse} target`] : ["good", `✓ ${better} or at target`];
}

function byNeed(one, other) {
  const need = (rate) => BADNESS[state(rate)[0]];
  const order = Object.keys(RATES);
  return need(one) - need(other) || order.indexOf(one.rate) - order.indexOf(other.rate);
}

function bar(rate) {
  const made = (name, options) => {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(options)) one.setAttribute(key, value);
    return one;
  };
  const svg = made("svg", { class: "bar", viewBox: "0 0 200 16", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(made("rect", { class: "track", x: 0, y: 6, width: 200, height: 4 }));
  svg.append(made("rect", { class: "range", x: 200 * rate.lower, y: 4, width: Math.max(1, 200 * (rate.upper - rate.lower)), height: 8 }));
  svg.append(made("rect", { class: "point", x: Math.min(198, Math.max(0, 200 * rate.ratio - 1)), y: 1, width: 2, height: 14 }));
  if (rate.target !== null) svg.append(made("line", { class: "aim", x1: 200 * rate.target, x2: 200 * rate.target, y1: 0, y2: 16 }));
  return svg;
}

function card(rate, family, window) {
  const [title, meaning, yes, no] = RATES[rate.rate];
  const [level, words] = state(rate);
  const behind = (outcome) => path(family ? "family" : "sessions", ...(family ? [family] : [])) +
    `?window=${window}&rate=${rate.rate}&outcome=${outcome}`;
  const rest = rate.denominator - rate.numerator;
  const mature = rate.maturity === null ? "" : rate.maturity >= 0.995 ? "all evidence is in"
    : `${percent(rate.maturity)} of the evidence is in: an estimate`;
  return el("li", { class: `card ${level}` },
    el("h3", {}, title),
    el("div", { class: "big" }, percent(rate.ratio)),
    el("div", { class: `state ${level}` }, words, " ", rate.target === null ? "" : el("span", { class: "whole" }, `(${rate.ratio === null ? "target " : ""}${percent(rate.target)})`)),
    rate.ratio === null ? "" : bar(rate),
    rate.ratio === null ? "" : el("p", {}, `95 % interval ${percent(rate.lower)} to ${percent(rate.upper)}; ${mature}.`),
    el("p", { class: "quiet" }, meaning + "."),
    el("p", {}, `Of ${counted(rate.denominator, rate.rate === "tool_success" ? "call" : "session")}: `,
      link(behind("good"), `${rate.numerator.toLocaleString("en")} ${yes}`), ", ",
      link(behind("rest"), `${rest.toLocaleString("en")} ${no}`), "."));
}

function gap(rates) {
  const of = (name) => rates.find((rate) => rate.rate === name && rate.ratio !== null);
  const [claimed, verified] = [of("claimed_completion"), of("verified_completion")];
  if (!claimed || !verified) return "";
  const points = 100 * (claimed.ratio - verified.ratio);
  const says = points > 0 ? `${points.toFixed(1)} points more is claimed than is verified`
    : "no more is claimed than is verified";
  return el("section", { class: "gap", "aria-label": "Claimed against verified" },
    el("strong", {}, "Claimed against verified: "),
    `agents claim ${percent(claimed.ratio)}, independent systems verify ${percent(verified.ratio)} of the ${counted(verified.denominator, "session")} that they can speak of: ${says}.`);
}

function freshness(body) {
  if (!body.as_of) return el("p", { class: "notice warn" }, "Nothing has been heard yet. Send spans to the gateway; the first session shows below within seconds.");
  const behind = (body.clock - Date.parse(body.as_of)) / 1000;
  if (behind > LATE_S) return el("p", { class: "notice warn" }, `Numbers as of ${when(body.as_of)} UTC. Event time is ${ago(behind)} behind the clock: either nothing is sent, or the pipeline lags (`, link("/api/health", "health"), ").");
  return el("p", { class: "quiet" }, `Numbers as of ${when(body.as_of)} UTC, ${behind < 1 ? "up to the clock" : ago(behind) + " behind the clock"}.`);
}

function windows(chosen, href) {
  return el("nav", { "aria-label": "Window" }, el("ul", { class: "choices" }, el("li", { class: "quiet" }, "Sessions that ended in the last"),
    Object.entries(WINDOWS).map(([name, words]) => el("li", {}, link(href(name), words, { "aria-current": name === chosen && "true" })))));
}

function verdictOn(rates) {
  const named = (level) => rates.filter((rate) => state(rate)[0] === level)
    .map((rate) => `${RATES[rate.rate][0].toLowerCase()} ${percent(rate.ratio)} (target ${percent(rate.target)})`);
  const [bad, warn] = [named("bad"), named("warn")];
  if (bad.length) return el("p", { class: "notice bad" }, el("strong", {}, `Missing the target: ${bad.join(", ")}.`), warn.length ? ` Perhaps also: ${warn.join(", ")}.` : "");
  if (warn.length) return el("p", { class: "notice warn" }, el("strong", {}, `Perhaps missing the target: ${warn.join(", ")}.`), " The interval still holds the target.");
  return rates.some((rate) => state(rate)[0] === "good") ? el("p", { class: "notice good" }, "Every rate with a target is at it.") : "";
}

async function ratesOf(cube, wanted) {
  // Without a window asked for: the shortest one from a day up that counts anything.
  for (const window of wanted ? [wanted] : ["24h", "7d"]) {
    const body = await ask("/api/rates", { cube, window });
    if (body.rates.length || wanted || window === "7d") return { ...body, rates: body.rates.filter((rate) => RATES[rate.rate]) };
  }
}

// --- tier 1

async function overview(query) {
  const system = await ratesOf("system", query.get("window"));
  const [families, newest] = await Promise.all([ask("/api/rates", { cube: "family", window: system.window }), ask("/api/sessions", { limit: 10 })]);
  const rates = [...system.rates].sort(byNeed);
  return ["All agents", [
    freshness(system), verdictOn(rates), windows(system.window, (name) => `#/?window=${name}`),
    rates.length ? "" : el("p", { class: "notice warn" }, "No session is counted in this window yet: a session counts when it has been quiet for long enough."),
    gap(rates), el("h2", {}, "All rates"), el("ul", { class: "cards" }, rates.map((rate) => card(rate, null, system.window))),
    el("h2", {}, "Task families"), familyTable(families.rates, system.window),
    el("h2", {}, "Newest sessions"), sessionTable(newest, `The ${newest.sessions.length} that ended last, of ${counted(newest.total, "session")}; open ones too`),
    el("p", {}, link("#/sessions", "All sessions"))]];
}

function familyTable(rates, window) {
  const shown = ["completion", "verified_completion", "resolution", "reopen", "escalation"];
  const families = [...new Set(rates.map((rate) => rate.dimensions.family))];
  const of = (family, name) => rates.find((rate) => rate.dimensions.family === family && rate.rate === name);
  const need = (family) => Math.min(...shown.map((name) => (of(family, name) ? BADNESS[state(of(family, name))[0]] : 9)));
  const misses = (family) => shown.filter((name) => of(family, name) && state(of(family, name))[0] === "bad").length;
  families.sort((one, other) => need(one) - need(other) || misses(other) - misses(one) || one.localeCompare(other));
  if (!families.length) return el("p", {}, "None in this window.");
  const cell = (family, name) => {
    const rate = of(family, name);
    if (!rate) return { text: "–", class: "number" };
    const [level, words] = state(rate);
    const mark = { bad: "✗ ", warn: "! ", good: "✓ " }[level] || "";
    return { class: `number ${level}`, text: [mark + percent(rate.ratio), el("span", { class: "unseen" }, ` ${words}`), el("span", { class: "quiet" }, ` of ${rate.denominator}`)] };
  };
  return table("✗ misses its target, ! may miss it, ✓ at target; the worst first", ["Family", ...shown.map((name) => RATES[name][0])],
    families.map((family) => [link(path("family", family) + `?window=${window}`, family), ...shown.map((name) => cell(family, name))]));
}

// --- tier 2

async function list(query, family) {
  const [rate, outcome] = [query.get("rate") || "", query.get("outcome") || ""];
  const system = family || rate ? await ratesOf(family ? "family" : "system", query.get("window")) : null;
  const window = system ? system.window : query.get("window");
  const rates = (system ? system.rates : []).filter((one) => !family || one.dimensions.family === family).sort(byNeed);
  const wanted = { family, rate, outcome: rate && outcome, window };
  const page = await ask("/api/sessions", wanted);
  const base = family ? path("family", family) : "#/sessions";
  const href = (changes) => `${base}?${new URLSearchParams(Object.entries({ ...wanted, family: "", ...changes }).filter(([, value]) => value))}`;
  const title = family ? `Family ${family}` : rate ? `Sessions behind ${RATES[rate][0].toLowerCase()}` : "All sessions";
  const choices = rate ? [["", "all"], ["good", RATES[rate][2]], ["rest", RATES[rate][3]],
    ...(PENDING.has(rate) ? [["bad", "of these: decided"], ["pending", "of these: may still change"]] : [])] : [];
  const what = !rate ? "sessions" : !outcome ? `that ${RATES[rate][0].toLowerCase()} counts` : choices.find(([name]) => name === outcome)?.[1] || "";
  const behind = el("section", { "aria-label": "Sessions", id: "behind" },
    el("h2", {}, rate ? `Sessions behind ${RATES[rate][0].toLowerCase()}` : "Sessions"),
    rate ? el("nav", { "aria-label": "Which sessions" }, el("ul", { class: "choices" }, choices.map(([name, words]) => el("li", {}, link(href({ outcome: name }), words, { "aria-current": name === outcome && "true" }))))) : "",
    sessionTable(page, page.counts === "tool_calls" ? `Sessions with ${counted(page.total, "call")} ${what}` : `${counted(page.total, "session")} ${rate ? what : ""}`),
    more(page, wanted));
  return [title, [freshness(system || page), family ? verdictOn(rates) : "",
    system ? windows(window, (name) => href({ window: name })) : "",
    family ? gap(rates) : "",
    family ? [el("h2", {}, "Rates"), rates.length ? el("ul", { class: "cards" }, rates.map((one) => card(one, family, window))) : el("p", {}, "None in this window.")] : "", behind]];
}

function more(page, wanted) {
  if (!page.cursor) return "";
  const button = el("button", { type: "button", onclick: async () => {
    const next = await ask("/api/sessions", { ...wanted, cursor: page.cursor });
    const body = button.parentElement.parentElement.querySelector("tbody");
    const rows = [...sessionTable(next, "").querySelectorAll("tbody tr")];
    body.append(...rows);
    say(`${rows.length} more sessions`);
    rows[0].querySelector("a").focus();
    button.parentElement.replaceWith(more(next, wanted));
  } }, "Show more");
  return el("p", {}, button);
}

function sessionTable(page, caption) {
  const many = new Set(page.sessions.map((one) => one.family)).size > 1 || !page.family;
  const facts = (one) => [one.completion || "not judged by a contract", one.verified && "verified", one.escalated && "escalated", one.reopened && "reopened",
    one.confirmed === true && "confirmed", one.confirmed === false && "denied"].filter(Boolean).join(", ");
  if (!page.sessions.length) return el("p", {}, "None.");
  return table(caption, ["Session", "Ended (UTC)", ...(many ? ["Family"] : []), "How it ended", "Judged", "Why, at its last revision"], page.sessions.map((one) => [
    link(path("session", one.tenant, one.conversation, one.ordinal), `${one.conversation}#${one.ordinal}`), { text: when(one.end).slice(0, 16), class: "number" }, ...(many ? [one.family || "–"] : []),
    ENDS[one.terminal_reason] ?? one.terminal_reason, one.terminal_reason ? facts(one) : "not yet", one.revision ? `${one.revision}: ${one.reason}` : "–"]));
}

// --- tier 3

async function session(tenant, conversation, ordinal) {
  const story = await ask(`/api/sessions/${encodeURIComponent(tenant)}/${encodeURIComponent(conversation)}`);
  const number = Number(ordinal) || story.sessions[story.sessions.length - 1].ordinal;
  const index = story.sessions.findIndex((one) => one.ordinal === number);
  if (index < 0) throw new Refused(404, `This conversation has no session #${number}.`);
  const [one, told] = [story.sessions[index], story.explanations[index]];
  const { verdict } = one;
  const level = !verdict.terminal_reason || verdict.completion === "pending" ? "warn"
    : verdict.eligible && !verdict.resolved ? "bad" : verdict.resolved ? "good" : "";
  const sentences = (lines) => el("ul", { class: "sentences" }, lines.map((line) => el("li", {}, line)));
  const others = story.sessions.length > 1 ? el("nav", { "aria-label": "Sessions of this conversation" }, el("ul", { class: "choices" }, el("li", { class: "quiet" }, "This conversation's sessions:"),
    story.sessions.map((other) => el("li", {}, link(path("session", tenant, conversation, other.ordinal), `#${other.ordinal}`, { "aria-current": other === one && "true" }))))) : "";
  const need = ["failed", "error", "pending", "passed", "not_applicable"];
  const ordered = [...told.criteria].sort((a, b) => need.indexOf(a.status) - need.indexOf(b.status));
  return [`${conversation}#${number}`, [
    el("p", { class: "quiet" }, `Tenant ${tenant}; ${told.revision ? `revision ${told.revision}` : "not judged yet"}${told.contract ? `, judged by ${told.contract}` : ""}. Times are UTC.`), others,
    el("div", { class: `notice ${level}` }, told.in_short.map((line) => el("p", {}, line))),
    el("h2", {}, "What to look at"), sentences(told.look_at),
    el("h2", {}, "What the customer came for"), el("p", {}, told.came_for),
    el("h2", {}, "What the agent claimed"), el("p", {}, told.claimed),
    el("h2", {}, "What was heard from outside"), told.heard.length ? sentences(told.heard) : el("p", {}, "Nothing yet."),
    told.how_well.length ? [el("h2", {}, "How well it was done"), sentences(told.how_well)] : "",
    el("h2", {}, "Criteria"), ordered.length ? criteria(ordered) : el("p", {}, "None: no contract judges it."),
    el("h2", {}, "What changed"), revisions(told), el("h2", {}, "Timeline"), timeline(one)]];
}

function criteria(ordered) {
  return table("What the contract asks, and what decided it", ["Criterion", "Status", "Why", "The contract asks", "Owner"], ordered.map((one) => [
    one.required ? one.id : `${one.id} (not required)`, { text: MARKS[one.status][0], class: `number ${MARKS[one.status][1]}` }, one.why, one.asks ? el("code", {}, one.asks) : "–",
    [one.stage, one.agent].filter(Boolean).join(", ") || "–"]));
}

function revisions(told) {
  if (!told.revisions.length) return el("p", {}, "Nothing: it has not been judged yet.");
  return table("Every revision, with its reason", ["Revision", "Known by (UTC)", "Because of", "What changed"], told.revisions.map((one) => [
    String(one.revision), when(one.learnt_at), one.because, one.changed.join("; ")]));
}

function timeline(one) {
  const runs = new Map();
  for (const span of one.spans) runs.set(span.trace_id, [...(runs.get(span.trace_id) || []), span]);
  const parts = [...runs.values()].sort((a, b) => a[0].start.localeCompare(b[0].start));
  if (!parts.length) return el("p", {}, "No step is kept.");
  return el("div", {}, parts.map((spans, index) => {
    const parents = new Map(spans.map((span) => [span.span_id, span.parent_id]));
    const depth = (id) => { let n = 0; for (let up = parents.get(id); parents.has(up) && n < 8; up = parents.get(up)) n += 1; return n; };
    const items = spans.map((span) => {
      const item = el("li", { class: "step" }, el("time", { datetime: span.start }, when(span.start).slice(11)), `${span.kind} `,
        el("strong", {}, span.tool || span.agent || span.model || span.name), ` ${duration(span)}`,
        span.failed ? el("span", { class: "failed" }, " ✗ failed") : "", span.control ? ` (${span.control})` : "");
      item.style.setProperty("--depth", depth(span.span_id));
      return item;
    });
    return el("section", { "aria-label": `Run ${index + 1}` }, el("p", { class: "head" }, `Run ${index + 1}, ${when(spans[0].start)}, trace `, el("code", {}, spans[0].trace_id)), el("ol", { class: "time" }, items));
  }));
}

function duration(span) {
  const ms = Date.parse(span.end) - Date.parse(span.start);
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

// --- where we are

function failure(error) {
  if (error.status !== 401 && error.status !== 403) return ["It did not work", [el("p", { class: "notice bad" }, error.message || String(error)), el("p", {}, link("#/", "All agents"))]];
  const field = (name, words, type) => el("p", {}, el("label", { for: name }, words), " ", el("input", { id: name, type, autocomplete: "off" }));
  return ["A token is needed", [el("p", {}, `${error.message}. It stays in this tab.`), el("form", { onsubmit: (event) => {
    event.preventDefault();
    for (const name of ["token", "tenant"]) sessionStorage.setItem(name, document.getElementById(name).value.trim());
    show();
  } }, field("token", "Token with the scope read", "password"), field("tenant", "Its tenant, if it has one", "text"), el("button", {}, "Read"))]];
}

async function route() {
  const [where, query] = (location.hash.replace(/^#\/?/, "") || "").split("?");
  const parts = where.split("/").map(decodeURIComponent);
  const asked = new URLSearchParams(query);
  if (parts[0] === "family" && parts[1]) return list(asked, parts[1]);
  if (parts[0] === "sessions") return list(asked, "");
  if (parts[0] === "session" && parts[2]) return session(parts[1], parts[2], parts[3]);
  return overview(asked);
}

function say(text) { document.getElementById("said").textContent = text; }

async function show(again) {
  const mine = (turn += 1);
  let shown;
  try { shown = await route(); } catch (error) { shown = failure(error); }
  if (mine !== turn) return;
  const [title, content] = shown;
  const held = again && document.activeElement ? document.activeElement.getAttribute("href") : null;
  const place = window.scrollY;
  const heading = el("h1", { tabindex: "-1" }, title);
  $main.replaceChildren(heading, ...content.flat(2).filter(Boolean));
  document.title = `${title} – trueup`;
  $main.dataset.shown = location.hash;
  if (!again) {
    const behind = new URLSearchParams(location.hash.split("?")[1]).get("rate") && document.getElementById("behind");
    if (behind) behind.scrollIntoView(); else window.scrollTo(0, 0);
    heading.focus({ preventScroll: true });
    return;
  }
  const same = held && [...document.querySelectorAll("a")].find((one) => one.getAttribute("href") === held);
  if (same) same.focus({ preventScroll: true });
  window.scrollTo(0, place);
}

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const [, tenant, conversation, ordinal] = /^(?:([^/]+)\/)?(.+?)(?:#(\d+))?$/.exec(document.getElementById("session").value.trim()) || [];
  if (conversation) location.hash = path("session", tenant || "default", conversation, ...(ordinal ? [ordinal] : []));
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); $main.focus(); });
window.addEventListener("hashchange", () => show(false));
setInterval(() => {
  const busy = document.hidden || !document.getElementById("live").checked || $main.contains(document.activeElement) && /^(INPUT|BUTTON)$/.test(document.activeElement.tagName);
  if (!busy && !document.querySelector("#behind tbody tr:nth-child(51)")) show(true);
}, EVERY_MS);
show(false);
