/* The list of sessions, a search in what was said, and the sessions that run now. */

import { get } from "/assets/api.js";
import { byId, clip, count, day, el, grouped, moment, shape, share, span, sum, tokens, usd } from "/assets/parts.js";

export const AGENTS = {
  "claude-code": "Claude Code",
  codex: "Codex",
  messages: "Messages",
  sevenfold: "Sevenfold",
};

const ORDERS = {
  newest: ["Newest first", (one) => -(one.last_at ?? 0)],
  cost: ["Cost", (one) => -(one.usd ?? 0)],
  lost: ["Lost to breaks", (one) => -one.lost_usd],
  breaks: ["Number of breaks", (one) => -one.breaks],
  largest: ["Largest context", (one) => -one.largest],
  calls: ["Calls", (one) => -one.calls],
};
const ROWS_AT_ONCE = 100;
const WAIT_MS = 400;

/* What the reader chose stays when the list is drawn again. */
const chosen = { words: "", order: "newest", agent: "", most: ROWS_AT_ONCE };

export async function showSessions(place, { redraw }) {
  const answer = await get("sessions");
  const list = el("ol", { class: "rows", id: "session-rows" });
  const found = el("p", { class: "found", role: "status" });
  const more = el("button", { type: "button", class: "more", on: { click: () => showMore() } });
  const draw = () => drawRows(answer.sessions, { list, found, more });
  function showMore() {
    const before = chosen.most;
    chosen.most += 5 * ROWS_AT_ONCE;
    draw();
    list.children[before]?.querySelector("a")?.focus();
  }
  draw();
  return {
    nodes: [
      el("h1", {}, "Sessions"),
      answer.error ? el("p", { class: "notice", role: "alert" }, answer.error) : null,
      answer.is_ready ? null : reading(answer),
      answer.sessions.length || !answer.is_ready ? totals(answer.sessions) : empty(),
      tools(answer.sessions, draw),
      el("div", { id: "hits" }),
      found,
      heads(),
      list,
      more,
      unreadable(answer.unreadable),
    ],
    ready: () => !answer.is_ready && setTimeout(redraw, WAIT_MS),
  };
}

function reading(answer) {
  return el(
    "p",
    { class: "notice" },
    "Reading your sessions for the first time: ",
    el("progress", { max: "1", value: String(answer.progress), "aria-label": "Sessions read" }),
    ` ${share(answer.progress, 1)}`,
  );
}

function empty() {
  return el(
    "p",
    { class: "card empty" },
    "No session was found. ",
    el("code", {}, "sevenfold chat"),
    " begins one; sessions of Claude Code and Codex are listed too once there are some.",
  );
}

function totals(sessions) {
  const week = Date.now() / 1000 - 7 * 86400;
  const recent = sessions.filter((one) => (one.last_at ?? 0) > week);
  const cards = [
    ["Spent", spentBy(sessions), count(sessions.length, "session")],
    ["Last 7 days", spentBy(recent), count(recent.length, "session")],
    ["Lost to breaks", usd(sum(sessions.map((one) => one.lost_usd))), count(sum(sessions.map((one) => one.breaks)), "break")],
    ["Largest context", tokens(Math.max(0, ...sessions.map((one) => one.largest))), "tokens in one request"],
  ];
  return el(
    "div",
    { class: "cards four" },
    cards.map(([label, value, remark]) =>
      el(
        "div",
        { class: "card stat" },
        el("p", { class: "label" }, label),
        el("p", { class: "value", vars: { "--chars": String(value.length) } }, value),
        el("p", { class: "remark" }, remark),
      ),
    ),
  );
}

function tools(sessions, draw) {
  const pick = (name) => (event) => {
    chosen[name] = event.target.value;
    chosen.most = ROWS_AT_ONCE;
    draw();
  };
  const agents = [...new Set(sessions.map((one) => one.agent))];
  return el(
    "form",
    { class: "filters", role: "search", on: { submit: searchSaid } },
    field("Find", el("input", { type: "search", id: "words", value: chosen.words, placeholder: "First words, project, model or id; Enter searches what was said", autocomplete: "off", on: { input: pick("words") } })),
    field("Order", el("select", { id: "order", on: { change: pick("order") } }, options(Object.entries(ORDERS).map(([name, [label]]) => [name, label]), chosen.order))),
    field("Agent", el("select", { id: "agent", on: { change: pick("agent") } }, options([["", "All agents"], ...agents.map((name) => [name, AGENTS[name] ?? name])], chosen.agent))),
  );
}

export function field(label, control) {
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control);
}

export function options(pairs, value) {
  return pairs.map(([name, label]) => el("option", { value: name, selected: name === value }, label));
}

async function searchSaid(event) {
  event.preventDefault();
  const query = byId("words").value.trim();
  if (!query) return;
  const place = byId("hits");
  place.replaceChildren(el("p", { class: "loading" }, "Searching in what was said …"));
  let hits;
  try {
    ({ hits } = await get("search", { q: query }));
  } catch (error) {
    place.replaceChildren(el("p", { class: "notice", role: "alert" }, error.message));
    return;
  }
  place.replaceChildren(
    el("h2", {}, hits.length ? `${count(hits.length, "turn")} with these words` : "No turn holds these words"),
    el("ol", { class: "rows hits" }, hits.map((hit) => el("li", {}, hitRow(hit)))),
    el("button", { type: "button", class: "more", on: { click: () => place.replaceChildren() } }, "Close the results"),
  );
}

function hitRow(hit) {
  return el(
    "a",
    { class: "row hit", "data-row": true, href: hit.key ? `#/session/${hit.key}` : "#/sessions" },
    el("span", { class: "name" }, clip(hit.title || hit.session, 90)),
    el("span", { class: "facts" }, [AGENTS[hit.agent] ?? hit.agent, hit.at ? hit.at.slice(0, 16).replace("T", " ") : "", `turn ${hit.turn}`].filter(Boolean).join(" · ")),
    el("span", { class: "snippet" }, hit.snippet),
  );
}

function drawRows(sessions, { list, found, more }) {
  const words = chosen.words.toLowerCase().split(/\s+/).filter(Boolean);
  const [, order] = ORDERS[chosen.order];
  const kept = sessions
    .filter((one) => !chosen.agent || one.agent === chosen.agent)
    .filter((one) => {
      const text = [one.id, one.title, one.sub_agent, one.project, one.agent, ...one.models].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .map((one, place) => [order(one), place, one])
    .sort(([a, one], [b, other]) => a - b || one - other)
    .map(([, , one]) => one);
  const top = Math.max(1, ...kept.map((one) => one.largest));
  list.replaceChildren(...kept.slice(0, chosen.most).map((one) => el("li", {}, sessionRow(one, top))));
  found.textContent = `${grouped(kept.length)} of ${count(sessions.length, "session")}`;
  const left = kept.length - chosen.most;
  more.hidden = left <= 0;
  more.textContent = `Show ${Math.min(left, 5 * ROWS_AT_ONCE)} more`;
}

function spentBy(sessions) {
  return (sessions.some((one) => one.is_estimated) ? "~" : "") + usd(sum(sessions.map((one) => one.usd)));
}

function heads() {
  return el(
    "div",
    { class: "row heads", "aria-hidden": "true" },
    ["Session", "Context", "Calls", "Cost", "Lost"].map((head, place) => el("span", { class: ["name", "spark", "calls", "cost", "lost"][place] }, head)),
  );
}

function sessionRow(one, top) {
  const short = [one.id.slice(0, 8), one.sub_agent?.slice(0, 8)].filter(Boolean).join("/");
  const cost = (one.is_estimated ? "~" : "") + usd(one.usd);
  const facts = [one.title && clip(one.folder, 40), day(one.last_at), one.sub_agent && "sub-agent", AGENTS[one.agent] ?? one.agent, one.models.join(", "), one.title && short].filter(Boolean).join(" · ");
  return el(
    "a",
    { class: "row", "data-row": true, href: `#/session/${one.key}`, id: `row-${one.key}` },
    el("span", { class: "name" }, one.title || clip(one.folder || short, 60), " ", el("small", {}, !one.title && one.folder ? short : "")),
    el("span", { class: "facts" }, facts),
    sparkline(one, top),
    el("span", { class: "calls" }, grouped(one.calls), el("span", { class: "narrow-word" }, " calls")),
    el("b", { class: "cost" }, cost),
    el("span", { class: one.breaks ? "lost bad" : "lost" }, one.breaks ? `${usd(one.lost_usd)} in ${count(one.breaks, "break")}` : "no break"),
  );
}

/* How the context grew, drawn on the same scale for all rows. */
function sparkline(one, top) {
  const width = 120;
  const height = 26;
  const step = width / Math.max(1, one.spark.length);
  const path = one.spark.map((value, place) => {
    const y = height - (value / top) * (height - 2);
    return `${place ? "V" : `M0,${height}V`}${y.toFixed(1)}H${((place + 1) * step).toFixed(1)}`;
  });
  return shape(
    "svg",
    { class: "spark", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `context up to ${tokens(one.largest)} tokens`, preserveAspectRatio: "none" },
    shape("path", { d: path.length ? `${path.join("")}V${height}Z` : "" }),
  );
}

function unreadable(files) {
  if (!files.length) return null;
  return el(
    "details",
    { class: "card" },
    el("summary", {}, `${count(files.length, "file")} could not be read`),
    el("ul", { class: "prose" }, files.map(([path, reason]) => el("li", {}, el("code", {}, path), el("small", {}, reason)))),
  );
}

/* Live. */

const STATES = { working: "Working", open: "Open", idle: "Idle" };

export async function showLive() {
  const body = el("div", { id: "live-body" });
  drawLive(body, await get("live"));
  return {
    nodes: [
      el("h1", {}, "Live"),
      el("p", { class: "about" }, "Sessions that did something in the last 15 minutes: ours, those of Claude Code and Codex, and what goes through the proxy."),
      body,
    ],
    take: (name, value) => {
      if (name === "live") drawLive(body, value);
      return name === "live";
    },
  };
}

function drawLive(body, { sessions }) {
  const focused = document.activeElement?.id;
  body.replaceChildren(
    sessions.length
      ? el("ol", { class: "rows live" }, sessions.map((one) => el("li", {}, liveRow(one))))
      : el("p", { class: "card empty" }, "Nothing is running. Start an agent, or send one through ", el("code", {}, "sevenfold run"), ": it appears here within a second."),
  );
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

function liveRow(one) {
  const isLink = one.source === "transcript" && one.key;
  const cached = one.tokens ? `${share(one.read_tokens, one.tokens)} from the cache` : "";
  return el(
    isLink ? "a" : "div",
    { class: "row liverow", "data-row": true, tabindex: isLink ? null : "0", role: isLink ? null : "group", "aria-label": isLink ? null : `${one.agent} behind the proxy`, href: isLink ? `#/session/${one.key}` : null, id: `live-${one.source}-${one.key}` },
    el("span", { class: `state ${one.state}` }, STATES[one.state]),
    el("span", { class: "name" }, `${AGENTS[one.agent] ?? one.agent}${one.project ? ` · ${one.project}` : ""}`, " ", el("small", {}, one.source === "proxy" ? "behind the proxy" : "")),
    el("span", { class: "facts" }, [one.model, one.last_at === null ? "" : `last ${moment(one.last_at)}`, `${span(Math.max(0, Math.round(Date.now() / 1000 - (one.last_at ?? 0))))} ago`].filter(Boolean).join(" · ")),
    el("span", { class: "calls" }, count(one.calls, "call")),
    el("span", { class: "spark" }, `${tokens(one.tokens)} tokens`, el("small", {}, ` ${cached}`)),
    el("b", { class: "cost" }, usd(one.usd)),
    el("span", { class: "snippet" }, one.said),
  );
}
