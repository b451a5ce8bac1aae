/* Memories: the list, one of them with history and blame, the review, the recall explorer, and rules. */

import { get, post } from "/assets/api.js";
import { byId, choice, clip, count, el, grouped, share } from "/assets/parts.js";
import { field, options } from "/assets/sessions.js";

const chosen = { words: "", kind: "", scope: "project", state: "" };
let query = "";

function when(iso) {
  return iso ? iso.slice(0, 16).replace("T", " ") : "";
}

function name(key) {
  return key.replace(/\.md$/, "");
}

export function diffNode(text, leftOut = 0) {
  const kinds = { "+": "added", "-": "removed", "@": "place" };
  return el(
    "pre",
    { class: "diff", tabindex: "0", role: "region", "aria-label": "Difference" },
    text.split("\n").map((line) => el("span", { class: kinds[line[0]] ?? "" }, `${line}\n`)),
    leftOut ? el("span", { class: "place" }, `… ${grouped(leftOut)} more lines`) : null,
  );
}

/* A change that was made, or why it was not: every one can be undone. */
async function act(context, path, fields, done) {
  try {
    const answer = await post(path, fields);
    context.say(typeof done === "function" ? done(answer) : done);
    await context.redraw();
  } catch (error) {
    context.say(error.message, { isError: true });
  }
}

function undoText(answer) {
  const keys = answer.changes.map((change) => name(change.key)).join(", ");
  return `${answer.step === "redo" ? "Done again" : "Undone"}: ${keys || "no memory is different"}`;
}

function button(label, onClick, more = {}) {
  return el("button", { type: "button", class: "more", on: { click: onClick }, ...more }, label);
}

export async function showMemories(place, context) {
  const answer = await get("memories", { scope: chosen.scope });
  const list = el("ol", { class: "rows", id: "memory-rows" });
  const found = el("p", { class: "found", role: "status" });
  let best = null;
  const draw = () => drawMemories(answer.memories, best, list, found);
  const pick = (what) => (event) => {
    chosen[what] = event.target.value;
    best = null;
    draw();
  };
  const search = async (event) => {
    event.preventDefault();
    if (!chosen.words.trim()) return;
    try {
      best = (await get("memories/search", { q: chosen.words })).keys;
    } catch (error) {
      context.say(error.message, { isError: true });
    }
    draw();
  };
  const kinds = [...new Set(answer.memories.map((one) => one.type))].filter(Boolean);
  draw();
  return {
    nodes: [
      el("h1", {}, "Memories"),
      el("p", { class: "about" }, `What is remembered ${chosen.scope === "user" ? "for all projects" : "of this project"}, and who said so. Every change is kept and can be undone.`),
      el("p", { class: "buttons" }, button("Undo the last change", () => act(context, "memory/undo", { scope: chosen.scope }, undoText)), button("Redo", () => act(context, "memory/redo", { scope: chosen.scope }, undoText)), answer.waiting ? el("a", { class: "more", href: "#/review" }, `Review ${count(answer.waiting, "change")}`) : null),
      el(
        "form",
        { class: "filters", role: "search", on: { submit: search } },
        field("Find", el("input", { type: "search", id: "words", value: chosen.words, autocomplete: "off", placeholder: "Name or description; Enter searches by content", on: { input: pick("words") } })),
        field("Type", el("select", { id: "kind", on: { change: pick("kind") } }, options([["", "All types"], ...kinds.map((kind) => [kind, kind])], chosen.kind))),
        field("State", el("select", { id: "state", on: { change: pick("state") } }, options([["", "All"], ["not trusted", "Not trusted"], ["not confirmed", "Not confirmed"], ["change waits", "A change waits"]], chosen.state))),
        field("Whose", el("select", { id: "scope", on: { change: (event) => { chosen.scope = event.target.value; context.redraw(); } } }, options([["project", "This project"], ...(answer.user_wide || chosen.scope === "user" ? [["user", `All projects (${answer.user_wide})`]] : [])], chosen.scope))),
      ),
      found,
      list,
      answer.memories.length ? null : el("p", { class: "card empty" }, "Nothing is remembered yet. ", el("code", {}, "sevenfold memory add"), " adds a memory, and so do agents."),
      history(context),
    ],
    keys: { z: () => act(context, "memory/undo", { scope: chosen.scope }, undoText) },
  };
}

function drawMemories(memories, best, list, found) {
  const words = best ? [] : chosen.words.toLowerCase().split(/\s+/).filter(Boolean);
  let kept = memories
    .filter((one) => !chosen.kind || one.type === chosen.kind)
    .filter((one) => !chosen.state || one.state === chosen.state)
    .filter((one) => words.every((word) => `${one.key} ${one.description}`.toLowerCase().includes(word)));
  if (best) {
    const ranks = new Map(best.map((key, rank) => [key, rank]));
    kept = kept.filter((one) => ranks.has(one.key)).sort((one, other) => ranks.get(one.key) - ranks.get(other.key));
  }
  found.textContent = `${grouped(kept.length)} of ${grouped(memories.length)} memories${best ? ", by content, best first" : ""}`;
  list.replaceChildren(...kept.slice(0, 500).map((one) => el("li", {}, memoryRow(one))));
}

function memoryRow(one) {
  const facts = [one.type, when(one.modified), `by ${one.author || one.who}`, one.uses.recalled ? `recalled ${count(one.uses.recalled, "time")}` : "", one.rule ? (one.rule.gate ? "gate" : "rule") : ""];
  return el(
    "a",
    { class: "row memoryrow", "data-row": true, href: memoryPath(one.key), id: `row-${one.key}` },
    el("span", { class: "name" }, name(one.key)),
    one.state ? el("span", { class: "state bad" }, one.state) : null,
    el("span", { class: "facts" }, facts.filter(Boolean).join(" · ")),
    el("span", { class: "snippet" }, clip(one.description, 200)),
  );
}

function memoryPath(key) {
  return `#/memory/${encodeURIComponent(key)}?scope=${chosen.scope}`;
}

function history(context) {
  const body = el("div", {});
  const load = async () => {
    const { changes } = await get("log", { scope: chosen.scope });
    body.replaceChildren(el("ol", { class: "rows" }, changes.map((change) => el("li", {}, changeNode(change, context, chosen.scope)))));
  };
  return el("details", { class: "card", on: { toggle: (event) => event.target.open && !body.children.length && load() } }, el("summary", {}, "The last changes of all memories"), body);
}

/* A change of the history: its diff opens below, with the button that takes it back. */
function changeNode(change, context, scope, key = null) {
  const body = el("div", { class: "change-body" });
  const keys = change.changes.map((one) => name(one.key) || "(erased)").join(", ");
  const open = async (event) => {
    if (!event.target.open || body.children.length) return;
    const answer = await get("diff", { id: change.id, scope });
    body.replaceChildren(
      answer.diff ? diffNode(answer.diff, answer.left_out) : el("p", { class: "faint" }, "No text changed."),
      el(
        "p",
        { class: "buttons" },
        change.changes.length ? button("Take this change back", () => act(context, "memory/revert", { id: change.id, scope }, "Taken back")) : null,
        key && change.changes.some((one) => one.key === key && one.after) ? button("Restore this text", () => act(context, "memory/restore", { key, id: change.id, scope }, `${name(key)} is as it was`)) : null,
      ),
    );
  };
  return el(
    "details",
    { class: "change", on: { toggle: open } },
    el("summary", { "data-row": true }, el("b", {}, change.step || change.kind), ` ${when(change.at)} by ${change.who}`, el("small", {}, ` ${keys ? `${clip(keys, 80)}: ` : ""}${clip(change.why, 120)}`)),
    body,
  );
}

export async function showMemory(place, context) {
  const scope = place.options.get("scope") ?? "project";
  const one = await get("memory", { key: place.id, scope });
  const blame = el("div", {});
  const counts = Object.entries(one.uses).filter(([, number]) => number).map(([kind, number]) => `${kind} ${number}`);
  return {
    nodes: [
      el("p", { class: "up" }, el("a", { href: "#/memories" }, "← Memories")),
      el("h1", {}, name(one.key)),
      el("p", { class: "origin" }, [one.type, `saved ${when(one.modified)} by ${one.author || one.who}`, `words: ${one.said_by}`, one.taint.length ? `through ${one.taint.join(", ")}` : "", one.why].filter(Boolean).join(" · ")),
      one.trusted ? null : el("p", { class: "notice" }, "Not trusted: it is quoted at most, and fires no rule. ", button("I vouch for it", () => act(context, "memory/trust", { key: one.key, scope }, `${name(one.key)} is trusted now; undo takes that back`))),
      one.broken.map((problem) => el("p", { class: "notice" }, `Could not be confirmed: ${problem}`)),
      one.evidence.map((sentence) => el("blockquote", {}, sentence)),
      one.review.length ? el("p", { class: "notice" }, "Another text for it waits: ", el("a", { href: "#/review" }, "review it")) : null,
      el("pre", { class: "card text", tabindex: "0", role: "region", "aria-label": "Text of the memory" }, one.text),
      el("p", { class: "faint" }, counts.length ? `${counts.join(", ")}; last ${when(one.last_used)}` : "Never used yet."),
      el("h2", {}, "History"),
      el("ol", { class: "rows" }, one.log.map((change) => el("li", {}, changeNode(change, context, scope, one.key)))),
      el("details", { class: "card", on: { toggle: (event) => event.target.open && showBlame(blame, one.key, scope) } }, el("summary", {}, "Who wrote each line"), blame),
    ],
    keys: { z: () => act(context, "memory/undo", { scope }, undoText) },
  };
}

async function showBlame(body, key, scope) {
  const { lines } = await get("blame", { key, scope });
  body.replaceChildren(
    el(
      "table",
      { class: "blame" },
      el("caption", { class: "unseen" }, "Each line with the change that brought it"),
      el("thead", {}, el("tr", {}, ["When", "Who", "Line"].map((head) => el("th", { scope: "col" }, head)))),
      el("tbody", {}, lines.map((line) => el("tr", {}, el("td", {}, when(line.at)), el("td", {}, line.who), el("td", {}, el("code", {}, line.line || " "))))),
    ),
  );
}

/* The review. */

export async function showReview(place, context) {
  const { waiting } = await get("review");
  const settle = (verb) => {
    const row = document.activeElement?.closest("[data-review]") ?? document.querySelector("[data-review]");
    if (row) decide(context, verb, row.dataset.review);
  };
  return {
    nodes: [
      el("h1", {}, "Review"),
      el("p", { class: "about" }, "Changes that wait for your decision: text that came through tools or web pages, files edited outside Sevenfold, and additions of a dream. None of them is used until you accept it."),
      waiting.length
        ? el("ol", { class: "reviews" }, waiting.map((one) => reviewNode(one, context)))
        : el("p", { class: "card empty" }, "Nothing waits for you."),
    ],
    keys: { a: () => settle("accept"), x: () => settle("reject"), z: () => act(context, "memory/undo", {}, undoText) },
  };
}

function decide(context, verb, id) {
  return act(context, `review/${verb}`, { id }, verb === "accept" ? "Accepted; undo takes that back" : "Rejected; undo takes that back");
}

function reviewNode(one, context) {
  return el(
    "li",
    { class: "card", "data-review": one.id, "data-row": true, tabindex: "-1", id: `review-${one.id}` },
    el("h2", { class: "small" }, one.changes.map((change) => name(change.key)).join(", ")),
    el("p", { class: "origin" }, [when(one.at), `by ${one.who}`, one.taint.length ? `through ${one.taint.join(", ")}` : "", one.session ? `session ${one.session}` : ""].filter(Boolean).join(" · ")),
    el("p", { class: "note" }, one.reason),
    one.changes.map((change) => diffNode(change.diff || "(no difference)")),
    el("p", { class: "buttons" }, button("Accept", () => decide(context, "accept", one.id), { "aria-keyshortcuts": "a" }), button("Reject", () => decide(context, "reject", one.id), { "aria-keyshortcuts": "x" })),
  );
}

/* The recall explorer. */

export async function showRecall(place, context) {
  const body = el("div", { id: "recalled", "aria-live": "polite" });
  const ask = async (event) => {
    event?.preventDefault();
    query = byId("prompt").value;
    if (!query.trim()) return;
    try {
      body.replaceChildren(...recallNodes(await get("recall", { q: query })));
    } catch (error) {
      context.say(error.message, { isError: true });
    }
  };
  return {
    nodes: [
      el("h1", {}, "Recall"),
      el("p", { class: "about" }, "What would this prompt bring, and why? A session uses the same search. A question here does not count as a use."),
      el("form", { class: "filters", on: { submit: ask } }, field("Prompt", el("textarea", { id: "prompt", rows: "3", placeholder: "how do we release?" }, query)), el("button", { class: "more", type: "submit" }, "What would it bring?")),
      body,
    ],
    ready: () => query && ask(),
  };
}

function recallNodes(answer) {
  const recalled = answer.found.filter((one) => one.is_recalled);
  const best = Math.max(0, ...answer.found.slice(0, answer.max_files).map((one) => one.certainty));
  const verdict = recalled.length
    ? `${count(recalled.length, "memory").replace("memorys", "memories")} would be recalled`
    : answer.found.length
      ? `Nothing would be recalled: the most certain is ${share(best, 1)} certain, and ${share(answer.min_certainty, 1)} is needed`
      : "No memory has anything in common with this prompt";
  return [
    el("h2", {}, verdict),
    answer.is_enabled ? null : el("p", { class: "notice" }, "Recall is switched off by recall.enabled."),
    answer.has_meanings ? null : el("p", { class: "faint" }, "By words alone: ", el("code", {}, "sevenfold recall --setup"), " finds by meaning too."),
    el(
      "div",
      { class: "table scroll", tabindex: "0", role: "region", "aria-label": "Memories and why" },
      el(
        "table",
        {},
        el("caption", { class: "unseen" }, "The memories that come nearest, best first"),
        el("thead", {}, el("tr", {}, ["Memory", "Recalled", "Certainty", "Share of words", "Meaning", "Words in common"].map((head, place) => el("th", { scope: "col", class: place > 1 && place < 5 ? "number" : null }, head)))),
        el("tbody", {}, answer.found.map(recallRow)),
      ),
    ),
  ].filter(Boolean);
}

function recallRow(one) {
  return el(
    "tr",
    { class: one.is_recalled ? "recalled" : "faint" },
    el("td", {}, one.key.includes(":") ? name(one.key) : el("a", { href: `#/memory/${encodeURIComponent(one.key)}`, "data-row": true }, name(one.key)), el("small", {}, clip(one.description, 120))),
    el("td", {}, one.is_recalled ? "yes" : "no"),
    el("td", { class: "number" }, share(one.certainty, 1), el("span", { class: "meter", vars: { "--length": String(one.certainty) } })),
    el("td", { class: "number" }, share(one.share, 1)),
    el("td", { class: "number" }, one.meaning === null ? "–" : one.meaning.toFixed(2)),
    el("td", {}, one.words.slice(0, 8).join(", ")),
  );
}

/* Rules. */

export async function showRules() {
  const { rules } = await get("rules");
  const order = rules.sort((one, other) => other.uses.shown - one.uses.shown);
  return {
    nodes: [
      el("h1", {}, "Rules"),
      el("p", { class: "about" }, "Memories that say when they apply. A rule is shown before the action that it is about. A gate also stops the action until the model acknowledges the rule."),
      order.length ? el("ol", { class: "reviews" }, order.map(ruleNode)) : el("p", { class: "card empty" }, "No memory says when it applies. ", el("code", {}, 'sevenfold memory add NAME --applies-to "command: git push"'), " makes a rule."),
    ],
  };
}

function ruleNode(one) {
  const { uses, rule } = one;
  const outcomes = [["Shown", uses.shown], ["Heeded", rule?.heeded ?? 0], ["Call changed", uses.changed], ["Call unchanged", uses.unchanged]];
  return el(
    "li",
    { class: "card" },
    el("h2", { class: "small" }, el("a", { href: `#/memory/${encodeURIComponent(one.key)}`, "data-row": true }, name(one.key)), " ", el("small", {}, rule?.gate ? "gate" : "rule")),
    rule && !rule.fires ? el("p", { class: "notice" }, "It never fires, because it is not trusted.") : null,
    one.refused.map((text) => el("p", { class: "notice" }, `Not read: ${text}`)),
    el("p", {}, "When: ", (rule?.conditions ?? []).map((condition) => el("code", { class: "condition" }, condition))),
    el("dl", { class: "factlist four" }, outcomes.map(([label, number]) => el("div", {}, el("dt", {}, label), el("dd", {}, grouped(number))))),
    el("p", { class: "snippet" }, clip(one.text.trim(), 300)),
  );
}

export { act, button, choice };
