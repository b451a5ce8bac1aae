/* Cache breaks: by cause, and one by one. */

class BreakView {
  constructor(report, sessions, onShow) {
    this.breaks = sessions.flatMap((session) => session.breaks);
    this.why = el("p", { class: "why", role: "status" });
    this.chips = [
      this.chip(null, "All"),
      ...report.causes.map((cause) => this.chip(cause, CAUSES[cause].label)),
    ];
    this.table = new SortedTable("Cache breaks", breakColumns(onShow), [], { sortBy: 5 });
    this.node = [
      el(
        "div",
        { class: "chips", role: "group", "aria-label": "Show the breaks of one cause" },
        this.chips.filter(Boolean),
      ),
      this.why,
      el("div", { class: "card" }, this.table.node),
    ];
    this.filter(null);
  }

  of(cause) {
    return cause === null ? this.breaks : this.breaks.filter((item) => item.cause === cause);
  }

  chip(cause, label) {
    const rows = this.of(cause);
    if (!rows.length) return null;
    const node = el(
      "button",
      { type: "button", class: "chip", on: { click: () => this.filter(cause) } },
      el("span", {}, label),
      el("b", {}, grouped(rows.length)),
      el("span", { class: "faint" }, lostText(rows)),
    );
    node.cause = cause;
    return node;
  }

  filter(cause) {
    for (const chip of this.chips) chip?.setAttribute("aria-pressed", String(chip.cause === cause));
    const rows = this.of(cause);
    const lost = tokens(sum(rows.map((item) => item.lost)));
    const unpriced = unpricedCount(rows);
    this.why.textContent =
      (cause === null
        ? `${count(rows.length, "call")} paid again for ${lost} tokens. Choose a cause to see what it means.`
        : CAUSES[cause].why) +
      (unpriced ? ` ${grouped(unpriced)} of these ${unpriced === 1 ? "is" : "are"} in no dollar figure.` : "");
    this.table.setRows(rows);
  }
}

function breakColumns(onShow) {
  return [
    {
      label: "When",
      isDown: true,
      value: (row) => row.at,
      cell: (row) => [
        el(
          "button",
          {
            type: "button",
            class: "link when",
            title: "Show it in its session",
            on: { click: () => onShow(row.session, row.call) },
          },
          moment(row.at),
        ),
        el("small", { class: "narrow" }, clip(row.session.title)),
      ],
    },
    {
      label: "Session",
      isWide: true,
      value: (row) => `${row.session.title} ${row.session.short}`,
      cell: (row) => [clip(row.session.title), " ", el("small", {}, row.session.short)],
    },
    {
      label: "Cause",
      value: (row) => CAUSES[row.cause].label,
      cell: (row) => [
        el("span", { class: `cause ${row.cause.replace(" ", "-")}` }, CAUSES[row.cause].label),
        row.gap === null ? null : el("small", { class: "narrow" }, `after ${span(row.gap)}`),
      ],
    },
    {
      label: "Since last call",
      isNumber: true,
      isWide: true,
      value: (row) => row.gap,
      cell: (row) => span(row.gap),
    },
    {
      label: "Tokens",
      isNumber: true,
      isWide: true,
      value: (row) => row.lost,
      cell: (row) => tokens(row.lost),
    },
    {
      label: "Cost",
      isNumber: true,
      value: (row) => row.usd,
      cell: (row) => [usd(row.usd), el("small", { class: "narrow" }, tokens(row.lost))],
    },
  ];
}
