/* Dreams with their diffs, what background work spends, and the team. */

import { get, post } from "/assets/api.js";
import { clip, count, el, grouped, share, tokens, usd } from "/assets/parts.js";
import { act, button, diffNode } from "/assets/memories.js";

const OUTCOMES = { completed: "changed memories", unchanged: "found nothing to do", previewed: "a preview", refused: "refused", killed: "stopped", failed: "failed", running: "running" };

export async function showDreams(place, context) {
  const { dreams, running } = await get("dreams");
  return {
    nodes: [
      el("h1", {}, "Dreams"),
      el("p", { class: "about" }, "Between sessions, a dream merges and tidies memories. It makes one change, and you can undo it."),
      running ? el("p", { class: "notice" }, `Dream ${running} is under way. `, button("Stop it", () => act(context, "dream/stop", {}, "It is asked to stop; it changes nothing"))) : null,
      dreams.length
        ? el("ol", { class: "rows" }, dreams.map((one) => el("li", {}, dreamNode(one, context))))
        : el("p", { class: "card empty" }, "There was no dream yet. ", el("code", {}, "sevenfold dream --dry-run"), " shows what one would do."),
    ],
  };
}

function dreamNode(one, context) {
  const body = el("div", { class: "change-body" });
  const counts = [[one.changed, "written"], [one.removed, "gone"], [one.archived, "archived"]].filter(([keys]) => keys.length).map(([keys, what]) => `${keys.length} ${what}`);
  const open = async (event) => {
    if (!event.target.open || body.children.length) return;
    const answer = await get("dream", { id: one.id });
    body.replaceChildren(
      ...[
        answer.reason ? el("p", { class: "note" }, answer.reason) : null,
        answer.report ? el("p", {}, answer.report) : null,
        ...["left_alone", "let_go"].map((kind) => (answer[kind].length ? el("ul", { class: "prose" }, answer[kind].map((text) => el("li", {}, `${kind === "left_alone" ? "Left as it is" : "Let go"}: ${text}`))) : null)),
        answer.diff ? diffNode(answer.diff, answer.left_out) : el("p", { class: "faint" }, "It changed nothing."),
        answer.transaction && !answer.is_undone ? el("p", { class: "buttons" }, button("Undo this dream", () => act(context, "dream/undo", { id: one.id }, `Dream ${one.id} is taken back`))) : null,
      ].filter(Boolean),
    );
  };
  return el(
    "details",
    { class: "change", on: { toggle: open } },
    el("summary", { "data-row": true }, el("b", {}, one.is_undone ? "undone" : (OUTCOMES[one.outcome] ?? one.outcome)), ` ${one.started.slice(0, 16).replace("T", " ")}`, el("small", {}, ` ${one.id} by ${one.writer === "model" ? "a model" : "fixed rules"}${counts.length ? `: ${counts.join(", ")}` : ""}`)),
    body,
  );
}

/* Spend. */

const MICROS = 1e6;

export async function showSpend(place, context) {
  const state = await get("spend");
  const change = async (path, fields, done) => {
    try {
      await post(path, fields);
      context.say(done);
      await context.redraw();
    } catch (error) {
      context.say(error.message, { isError: true });
    }
  };
  return {
    nodes: [
      el("h1", {}, "Spend"),
      el("p", { class: "about" }, "What background work of all your processes spent: notes, extraction, dreams, side queries. Your conversations are never stopped by this."),
      el(
        "div",
        { class: state.background ? "card kill" : "card kill stopped" },
        el("p", {}, el("b", {}, state.background ? "Background work may run." : "Background work is stopped."), " ", state.stopped ? `Stopped ${state.stopped}.` : state.is_allowed ? "" : "Switched off by spend.background in the settings."),
        state.stopped
          ? button("Let it go on", () => change("spend/resume", {}, "Background work goes on"))
          : state.is_allowed
            ? button("Stop all background work", () => change("spend/stop", {}, "Background work is stopped in all processes"), { class: "more danger" })
            : null,
      ),
      el("div", { class: "columns" }, capNode("The last hour", state.hour), capNode("The last day", state.day)),
      strikes(state, change),
      kindsTable(state),
      days(state.days),
      state.unbilled_calls ? el("p", { class: "notice" }, `${count(state.unbilled_calls, "request")} without a bill, under way or lost: the caps count what was expected of each.`) : null,
      el("p", { class: "faint" }, "The caps are settings: ", el("code", {}, "sevenfold settings spend"), " shows them."),
    ],
  };
}

function capNode(label, one) {
  const part = Math.max(one.cap_micro_usd ? one.micro_usd / one.cap_micro_usd : 0, one.cap_tokens ? one.tokens / one.cap_tokens : 0);
  return el(
    "div",
    { class: "card" },
    el("h2", { class: "small" }, label),
    el("p", { class: "big" }, usd(one.micro_usd / MICROS), el("small", {}, ` of ${usd(one.cap_micro_usd / MICROS)}`)),
    el("span", { class: "meter", vars: { "--length": String(Math.min(1, part)) } }),
    el("p", { class: "faint" }, `${share(part, 1)} of the cap used; ${tokens(one.tokens)} of ${tokens(one.cap_tokens)} tokens`),
  );
}

function strikes(state, change) {
  const failed = Object.entries(state.strikes);
  if (!failed.length) return null;
  return el(
    "ul",
    { class: "prose" },
    failed.map(([kind, one]) => el("li", { class: "notice" }, `${kind}: ${count(one.count, "failure")} in a row, pauses until ${one.until.slice(0, 16).replace("T", " ")} UTC (${clip(one.reason, 160)}) `, button("Try again now", () => change("spend/forgive", { kind }, `${kind} is tried again`)))),
  );
}

function kindsTable(state) {
  const kinds = Object.entries(state.kinds);
  if (!kinds.length) return el("p", { class: "card empty" }, "Nothing was spent in the last day.");
  return el(
    "div",
    { class: "card table scroll", tabindex: "0", role: "region", "aria-label": "Spend by kind" },
    el(
      "table",
      {},
      el("caption", { class: "unseen" }, "The last day by kind of work"),
      el("thead", {}, el("tr", {}, ["The last day by kind", "Calls", "Spent", "Tokens", "Cached"].map((head, place) => el("th", { scope: "col", class: place ? "number" : null }, head)))),
      el("tbody", {}, kinds.map(([kind, one]) => el("tr", {}, el("td", {}, kind), el("td", { class: "number" }, grouped(one.calls)), el("td", { class: "number" }, usd(one.micro_usd / MICROS) + (one.unpriced_calls ? ` + ${one.unpriced_calls} unpriced` : "")), el("td", { class: "number" }, tokens(one.tokens)), el("td", { class: "number" }, share(one.cached_tokens, one.tokens))))),
    ),
  );
}

function days(spent) {
  const rows = Object.entries(spent).sort().reverse();
  if (!rows.length) return null;
  const most = Math.max(...rows.map(([, micros]) => micros), 1);
  return el(
    "section",
    { class: "card" },
    el("h2", { class: "small" }, "By day"),
    el("ul", { class: "bars" }, rows.map(([day, micros]) => el("li", {}, el("span", {}, day), el("b", {}, usd(micros / MICROS)), el("span", { class: "meter wide-meter", vars: { "--length": String(micros / most) } })))),
  );
}

/* The team. */

export async function showTeam(place, context) {
  const state = await get("team");
  const head = [el("h1", {}, "Team")];
  if (!state.joined) {
    return { nodes: [...head, el("p", { class: "about" }, "Memories that you share with others through a server."), el("p", { class: "card empty" }, "This project has not joined a team. To join one: ", el("code", {}, "sevenfold team join URL"), ". To start a server: ", el("code", {}, "sevenfold serve"), ".")] };
  }
  const { joined } = state;
  const held = Object.entries(state.held);
  const leaked = Object.entries(state.leaked);
  return {
    nodes: [
      ...head,
      el("p", { class: "about" }, `${joined.repo_name} on ${joined.url}, as ${joined.member} of ${joined.org}. This page does not contact the server.`),
      state.refusal ? el("p", { class: "notice" }, `Refused by the server: ${state.refusal}`) : null,
      el("dl", { class: "factlist" }, [["Shared", state.shared.length], ["To send", state.unsent.length], ["Conflicts", state.conflicts.length]].map(([label, number]) => el("div", {}, el("dt", {}, label), el("dd", {}, grouped(number))))),
      state.conflicts.length ? el("h2", {}, "Conflicts") : null,
      state.conflicts.length ? el("p", { class: "about" }, "Two people changed the same memory. Lines with - are in the memory, lines with + in the copy that was kept.") : null,
      el("ol", { class: "reviews" }, state.conflicts.map((one) => conflictNode(one, context))),
      list("To be sent", state.unsent),
      list("Held back", held.map(([key, reason]) => `${key}: ${reason}`)),
      list("Shared already, and would be held back now", leaked.map(([key, reason]) => `${key}: ${reason}`)),
      list("Shared memories", state.shared),
    ],
  };
}

function list(title, items) {
  if (!items.length) return null;
  return el("details", { class: "card", open: items.length < 8 }, el("summary", {}, `${title} (${items.length})`), el("ul", { class: "prose" }, items.slice(0, 500).map((text) => el("li", {}, text))));
}

function conflictNode(one, context) {
  const take = (which) => act(context, "team/resolve", { copy: one.copy, take: which, seen: one.seen }, (answer) => (answer.waiting ? `Settled here; the others are told later (${answer.waiting})` : "Settled for everybody"));
  return el(
    "li",
    { class: "card", "data-row": true, tabindex: "-1", id: `conflict-${one.copy}` },
    el("h3", {}, one.memory),
    el("p", { class: "origin" }, `and its copy ${one.copy}`),
    diffNode(one.diff || "(no difference)"),
    el("p", { class: "buttons" }, one.seen ? button("Keep the memory", () => take("original")) : null, button("Take the copy", () => take("copy"))),
  );
}
