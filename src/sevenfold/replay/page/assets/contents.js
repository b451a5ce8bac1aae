/* What filled the context, the most expensive tool results, and files read twice. */

const MOST_TOOLS = 8; // as tall as the kinds beside them
const MOST_COMPARED = 10;

class FillView {
  constructor(report, sessions) {
    this.shares = report.fill.shares;
    this.sessions = sessions;
    this.isCarried = true;
    this.body = el("div", { class: "columns" });
    const measure = choice(
      "What is counted",
      [
        ["carried", "Sent, with every call"],
        ["entered", "Entered, once"],
      ],
      "carried",
      (value) => {
        this.isCarried = value === "carried";
        this.draw();
      },
    );
    this.node = [measure, this.body, this.compared()];
    this.draw();
  }

  value([, , entered, carried]) {
    return this.isCarried ? carried : entered;
  }

  draw() {
    const kinds = {};
    for (const row of this.shares) kinds[row[0]] = (kinds[row[0]] ?? 0) + this.value(row);
    const parts = fillParts(kinds);
    const whole = sum(parts.map((part) => part.value));
    this.body.replaceChildren(
      el(
        "div",
        { class: "card" },
        el("h3", {}, "By kind"),
        stackedBar("What filled the context", parts),
        kindTable(parts, whole),
      ),
      el("div", { class: "card" }, el("h3", {}, "By tool"), this.tools(whole)),
    );
  }

  tools(whole) {
    const tools = new Map();
    for (const row of this.shares.filter(([kind]) => kind.startsWith("tool_re"))) {
      const tool = tools.get(row[1]) ?? { name: row[1] || "unknown tool", tool_result: 0, tool_request: 0 };
      tool[row[0]] += this.value(row);
      tools.set(row[1], tool);
    }
    const size = (tool) => tool.tool_result + tool.tool_request;
    const ordered = [...tools.values()].filter(size).sort((one, other) => size(other) - size(one));
    if (!ordered.length) return el("p", { class: "empty" }, "No tool was used.");
    const left = ordered.slice(MOST_TOOLS);
    const rows = ordered.slice(0, MOST_TOOLS);
    if (left.length) {
      rows.push({
        name: count(left.length, "other tool"),
        tool_result: sum(left.map((tool) => tool.tool_result)),
        tool_request: sum(left.map((tool) => tool.tool_request)),
      });
    }
    const most = Math.max(...rows.map(size));
    return el(
      "ul",
      { class: "bars" },
      rows.map((tool) =>
        el(
          "li",
          {},
          el("span", { class: "name" }, tool.name),
          el("b", {}, `${tokens(size(tool))} `, el("small", {}, share(size(tool), whole))),
          stackedBar(tool.name, fillParts(tool).slice(0, 2), size(tool) / most),
        ),
      ),
    );
  }

  /* The sessions that cost most, side by side. */
  compared() {
    const rows = this.sessions.filter((session) => sum(Object.values(session.fill))).slice(0, MOST_COMPARED);
    if (rows.length < 2) return null;
    return el(
      "div",
      { class: "card" },
      el(
        "h3",
        {},
        rows.length < this.sessions.length
          ? `The ${rows.length} most expensive sessions`
          : "Session by session",
      ),
      el(
        "ul",
        { class: "bars compared" },
        rows.map((session) =>
          el(
            "li",
            {},
            el("span", { class: "name" }, session.title, " ", el("small", {}, session.short)),
            el("b", {}, `${tokens(sum(Object.values(session.fill)))} `, el("small", {}, "tokens")),
            stackedBar(session.title, fillParts(session.fill)),
          ),
        ),
      ),
    );
  }
}

function kindTable(parts, whole) {
  return el(
    "table",
    { class: "kinds" },
    el(
      "tbody",
      {},
      parts
        .filter((part) => part.value > 0)
        .map((part) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, swatch(part.kind), part.label),
            el("td", { class: "number" }, part.text.replace(" tokens", "")),
            el("td", { class: "number faint" }, share(part.value, whole)),
          ),
        ),
    ),
  );
}

function resultsTable(report, sessions, onShow) {
  const columns = [
    {
      label: "Tool",
      isWide: true,
      class: "tool",
      value: (row) => row.tool,
      cell: (row) => row.tool || "?",
    },
    {
      label: "What it was asked",
      class: "what",
      value: (row) => row.label,
      cell: (row) => [
        el("b", { class: "narrow" }, row.tool || "?"),
        isPath(row.label) ? pathNode(row.label) : el("code", { title: row.label }, row.label || "–"),
        row.session
          ? el(
              "button",
              {
                type: "button",
                class: "link small",
                title: "Show its session",
                on: { click: () => onShow(row.session, row.call) },
              },
              `${clip(row.session.title)} · ${moment(row.at)}`,
            )
          : null,
      ],
    },
    {
      label: "Tokens",
      isNumber: true,
      isWide: true,
      value: (row) => row.tokens,
      cell: (row) => `~${tokens(row.tokens)}`,
    },
    {
      label: "Sent",
      isNumber: true,
      isWide: true,
      value: (row) => row.sent,
      cell: (row) => `${grouped(row.sent)}×`,
    },
    {
      label: "Cost",
      isNumber: true,
      value: (row) => row.usd,
      cell: (row) => [
        row.usd === null ? "unpriced" : `~${usd(row.usd)}`,
        el("small", { class: "narrow" }, `${tokens(row.tokens)} × ${grouped(row.sent)}`),
      ],
    },
  ];
  const rows = report.costly_results.map(([place, tool, label, at, size, sent, cost]) => {
    const session = place === null ? null : sessions[place];
    return {
      session,
      call: session ? callAt(session, at) : null,
      tool,
      label,
      at,
      tokens: size,
      sent,
      usd: cost,
    };
  });
  return new SortedTable("The most expensive tool results", columns, rows, { sortBy: 4 }).node;
}

function isPath(label) {
  return label.includes("/") && !label.includes(" ");
}

/* The drawn call at some time, as far as the session has times. */
function callAt(session, at) {
  const { at: times, call } = session.series;
  if (at === null || session.first_at === null || !times.length) return null;
  return call[lastAtMost(times, at - session.first_at)];
}

function readsTable(report) {
  const columns = [
    { label: "File", class: "what", value: ([path]) => path, cell: ([path]) => pathNode(path) },
    {
      label: "Again",
      isNumber: true,
      value: ([, times]) => times,
      cell: ([, times]) => `${grouped(times)}×`,
    },
    {
      label: "Tokens",
      isNumber: true,
      value: ([, , size]) => size,
      cell: ([, , size]) => `~${tokens(size)}`,
    },
  ];
  return new SortedTable("Files read again", columns, report.repeated_reads, { sortBy: 2 }).node;
}

function resultsSection(report, sessions, onShow) {
  const { repeated_entered: entered, repeated_carried: carried } = report.fill;
  return [
    report.costly_results.length
      ? el("div", { class: "card" }, resultsTable(report, sessions, onShow))
      : null,
    report.repeated_reads.length ? el("h3", { class: "sub", id: "reads" }, "Files read again, though unchanged") : null,
    report.repeated_reads.length
      ? el(
          "p",
          { class: "about" },
          "The very content was still in the context: ",
          `~${tokens(entered)} tokens that entered twice, ~${tokens(carried)} with every call that sent them.`,
        )
      : null,
    report.repeated_reads.length ? el("div", { class: "card" }, readsTable(report)) : null,
  ].filter(Boolean);
}
