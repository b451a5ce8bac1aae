/* The sessions: a list to pick from, and beside it everything about the one that was picked. */

const FEW = 6; // so many stand beside a plot without scrolling
const MOST_TITLE = 80; // characters of what a person wrote first
const MOST_OPTIONS = 200; // more are found by searching, not by scrolling

const ORDERS = {
  cost: ["Cost", (session) => session.cost],
  lost: ["Lost to breaks", (session) => session.lost],
  breaks: ["Number of breaks", (session) => session.breaks.length],
  newest: ["Newest first", (session) => session.last_at ?? 0],
  calls: ["Calls", (session) => session.total.calls],
  largest: ["Largest context", (session) => session.largest],
  miss: ["Lowest hit rate", (session) => -session.total.tokens[0] / (prompt(session.total.tokens) || 1)],
};

/* A column of the payload: how much each value is more than the one before; "-" where there is none. */
function readColumn(text) {
  let value = 0;
  return text ? text.split(" ").map((step) => (step === "-" ? null : (value += Number(step)))) : [];
}

/* Rows of the payload as objects; the breaks know whose they are. */
function readSessions(report) {
  report.sessions.forEach((session, place) => {
    session.place = place;
    const packed = session.series;
    let series = null;
    // Most are never looked at, so each is read when it is.
    Object.defineProperty(session, "series", {
      get: () =>
        (series ??= Object.fromEntries(Object.entries(packed).map(([name, text]) => [name, readColumn(text)]))),
    });
    const own = session.id.slice(0, 8);
    const sub = session.sub_agent?.slice(0, 8);
    session.title = clip(session.prompt || session.folder || own, MOST_TITLE);
    session.short = [
      session.prompt && clip(session.folder),
      [session.prompt || session.folder ? own : "", sub].filter(Boolean).join("/"),
    ]
      .filter(Boolean)
      .join(" · ");
    session.breaks = session.breaks.map(([call, at, cause, lost, cost, gap, life]) => ({
      session,
      call,
      at,
      cause: report.causes[cause],
      lost,
      usd: cost,
      gap,
      life,
    }));
    session.cost = sum(session.total.usd);
    session.lost = sum(session.breaks.map((item) => item.usd));
    session.words = [
      session.id,
      session.sub_agent,
      session.prompt,
      session.project,
      session.path,
      session.agent,
      ...session.models,
    ]
      .join(" ")
      .toLowerCase();
  });
  return report.sessions;
}

/* A sub-agent is part of a session: it is listed, and counted apart. */
function countListed(listed, all) {
  const pick = (isSub) => (session) => Boolean(session.sub_agent) === isSub;
  return [
    ["session", false],
    ["sub-agent", true],
  ]
    .filter(([, isSub]) => all.some(pick(isSub)))
    .map(
      ([thing, isSub]) => `${grouped(listed.filter(pick(isSub)).length)} of ${count(all.filter(pick(isSub)).length, thing)}`,
    )
    .join(", ");
}

class SessionView {
  constructor(sessions) {
    this.sessions = sessions;
    this.only = null;
    this.dearest = Math.max(...sessions.map((session) => session.cost), 0);
    this.plot = new ContextPlot();
    this.panel = el("div", { class: "panel card" });
    this.node = sessions.length > 1 ? [this.makePicker(), this.panel] : [this.panel];
    if (sessions.length > 1) this.list();
    this.pick(sessions[0]);
  }

  makePicker() {
    const search = el("input", {
      type: "search",
      id: "session-search",
      placeholder: "First words, project or model",
      autocomplete: "off",
      spellcheck: "false",
      on: { input: () => this.list() },
    });
    const order = el(
      "select",
      { id: "session-order", on: { change: () => this.list() } },
      Object.entries(ORDERS).map(([key, [label]]) => el("option", { value: key }, label)),
    );
    this.search = search;
    this.order = order;
    this.found = el("p", { class: "found", role: "status" });
    this.limit = el("button", {
      type: "button",
      class: "limit",
      hidden: true,
      "aria-label": "Show all sessions",
      on: { click: () => this.showOnly(null) },
    });
    this.options = el("div", {
      class: "options",
      role: "listbox",
      tabindex: "0",
      "aria-label": "Sessions",
      on: { keydown: (event) => this.key(event) },
    });
    return el(
      "div",
      { class: `picker card${this.sessions.length > FEW ? " long" : ""}` },
      el("label", { for: "session-search" }, "Find a session"),
      search,
      el("div", { class: "order" }, el("label", { for: "session-order" }, "Sort by"), order),
      this.limit,
      this.found,
      this.options,
    );
  }

  /* From a row of days, projects or models: its sessions alone. Without a label, all of them again. */
  showOnly(label, picked = null) {
    const first = picked ? this.sessions.find((session) => picked.has(session)) : this.sessions[0];
    if (this.options) {
      this.only = picked;
      this.limit.hidden = !picked;
      this.limit.textContent = picked ? `${label} ✕` : "";
      this.limit.setAttribute("aria-label", picked ? `Only ${label}. Show all sessions` : "Show all sessions");
      this.list();
      (picked ? this.limit : this.search).focus({ preventScroll: true });
    }
    if (!picked) return;
    this.pick(first);
    byId("sessions").scrollIntoView({ block: "start", behavior: "instant" });
  }

  list() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const value = ORDERS[this.order.value][1];
    this.listed = this.sessions
      .filter((session) => !this.only || this.only.has(session))
      .filter((session) => words.every((word) => session.words.includes(word)))
      .sort((one, other) => value(other) - value(one) || one.place - other.place);
    const shown = this.listed.slice(0, MOST_OPTIONS);
    this.options.replaceChildren(...shown.map((session) => this.option(session)));
    const left = this.listed.length - shown.length;
    this.found.textContent =
      countListed(this.listed, this.sessions) +
      (left > 0 ? `; the first ${MOST_OPTIONS} are listed, search for others` : "");
    this.markPicked();
  }

  option(session) {
    const { total } = session;
    // The figure by which the list is sorted is in it.
    const last = {
      miss: `${hitRate(total)} hit`,
      largest: `${tokens(session.largest)} at most`,
      lost: `${usd(session.lost)} lost`,
    };
    const facts = [
      session.prompt ? clip(session.folder, 20) : session.short,
      day(session.first_at),
      count(total.calls, "call"),
      last[this.order.value] ?? (session.breaks.length ? count(session.breaks.length, "break") : ""),
    ];
    return el(
      "div",
      {
        class: "option",
        role: "option",
        id: `session-${session.place}`,
        on: { click: () => this.pick(session) },
      },
      el("span", { class: "name" }, session.title),
      el("b", { class: "cost" }, spent(total)),
      el("span", { class: "facts" }, facts.filter(Boolean).join(" · ")),
      el("span", {
        class: "meter",
        vars: { "--length": String(this.dearest ? session.cost / this.dearest : 0) },
      }),
    );
  }

  key(event) {
    const here = this.listed.indexOf(this.picked);
    const last = Math.min(this.listed.length, MOST_OPTIONS) - 1;
    const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: last }[event.key];
    if (next === undefined || last < 0) return;
    event.preventDefault();
    this.pick(this.listed[Math.min(last, Math.max(0, next))]);
    byId(`session-${this.picked.place}`)?.scrollIntoView({ block: "nearest" });
  }

  pick(session) {
    this.picked = session;
    this.markPicked();
    this.draw(session);
  }

  markPicked() {
    if (!this.options || !this.picked) return;
    for (const option of this.options.children) {
      option.setAttribute("aria-selected", String(option.id === `session-${this.picked.place}`));
    }
    this.options.setAttribute("aria-activedescendant", `session-${this.picked.place}`);
  }

  /* From a row of another table: this session, at this call. */
  goTo(session, call) {
    this.pick(session);
    this.panel.scrollIntoView({ block: "start", behavior: "instant" });
    this.plot.goTo(call);
  }

  draw(session) {
    const { total } = session;
    const parts = fillParts(session.fill);
    const hasPlot = session.series.call.length > 0;
    this.panel.replaceChildren(
      ...[
        el("h3", {}, session.title, " ", el("small", {}, session.short)),
        el("p", { class: "origin" }, originOf(session)),
        session.project ? pathNode(session.project) : null,
        pathNode(session.path),
        facts([
          ["Spent", spent(total)],
          ["Without a cache", session.cost ? (total.estimated_usd ? "~" : "") + usd(total.uncached) : "–"],
          ["Lost to breaks", lostFact(session.breaks)],
          ["Hit rate", hitRate(total)],
          ["Calls", grouped(total.calls)],
          ["Largest context", tokens(session.largest)],
        ]),
        hasPlot ? this.plot.tools : null,
        hasPlot
          ? this.plot.node
          : el("p", { class: "empty" }, "No call of this session has its usage in the log."),
        hasPlot ? plotKey(session) : null,
        el("h4", {}, "What filled this context"),
        stackedBar("What filled this context", parts),
        legend(parts),
      ].filter(Boolean),
    );
    if (hasPlot) this.plot.show(session, session.title);
  }
}

function originOf(session) {
  const agent =
    { "claude-code": "Claude Code", codex: "Codex", messages: "Messages", sevenfold: "Sevenfold" }[
      session.agent
    ] ?? session.agent;
  return [
    session.sub_agent ? "sub-agent" : "",
    `${agent} ${session.version}`.trim(),
    session.models.join(", "),
    session.first_at === null ? "" : `${moment(session.first_at)} to ${moment(session.last_at)}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function lostText(breaks) {
  const cost = sum(breaks.map((item) => item.usd));
  return cost ? usd(cost) : `${tokens(sum(breaks.map((item) => item.lost)))} tokens`;
}

/* How many breaks the dollars leave out; none where it is all told in tokens. */
function unpricedCount(breaks) {
  const priced = breaks.filter((item) => item.usd !== null);
  return sum(priced.map((item) => item.usd)) ? breaks.length - priced.length : 0;
}

function lostFact(breaks) {
  if (!breaks.length) return "nothing";
  const unpriced = unpricedCount(breaks);
  return lostText(breaks) + (unpriced ? `; ${count(unpriced, "unpriced break")}` : "");
}

function facts(rows) {
  return el(
    "dl",
    { class: "factlist" },
    rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

function plotKey(session) {
  const compactions = session.cuts.filter(([, , kind]) => kind === "compaction").length;
  const clearings = session.cuts.length - compactions;
  return el(
    "div",
    { class: "plot-key" },
    el(
      "ul",
      { class: "legend" },
      el("li", {}, swatch("plot-read"), el("span", {}, "From the cache")),
      el("li", {}, swatch("plot-paid"), el("span", {}, "Written or fresh")),
      el("li", { class: "waiting" }, swatch("sunken"), el("span", {}, "Waiting")),
      el(
        "li",
        {},
        markIcon("break"),
        el("span", {}, "Cache break"),
        el("b", {}, grouped(session.breaks.length)),
      ),
      compactions
        ? el(
            "li",
            {},
            markIcon("compaction"),
            el("span", {}, "Compaction"),
            el("b", {}, grouped(compactions)),
          )
        : null,
      clearings
        ? el("li", {}, markIcon("clearing"), el("span", {}, "Clearing"), el("b", {}, grouped(clearings)))
        : null,
    ),
    el(
      "p",
      { class: "hint", id: "plot-keys" },
      "Drag over a part to zoom in. ",
      el(
        "span",
        { class: "keys" },
        "Keys: arrows step, Page Up and Page Down go from mark to mark, + and − zoom, Escape shows all.",
      ),
    ),
  );
}
