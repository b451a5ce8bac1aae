/* All sessions as a table: for paper and for pictures of the whole page, where a list that scrolls is cut off. */

const ROLL_ROWS = 40;

function sessionTable(sessions, onShow) {
  const columns = [
    {
      label: "Session",
      class: "what",
      value: (row) => `${row.title} ${row.short}`,
      cell: (row) =>
        el(
          "button",
          { type: "button", class: "link", title: "Show its context", on: { click: () => onShow(row, 0) } },
          row.title,
          " ",
          el("small", {}, row.short),
        ),
    },
    {
      label: "Began",
      class: "began",
      isDown: true,
      isWide: true,
      value: (row) => row.first_at,
      cell: (row) => moment(row.first_at),
    },
    {
      label: "Calls",
      isNumber: true,
      isWide: true,
      value: (row) => row.total.calls,
      cell: (row) => grouped(row.total.calls),
    },
    {
      label: "Largest",
      isNumber: true,
      isWide: true,
      value: (row) => row.largest,
      cell: (row) => tokens(row.largest),
    },
    {
      label: "Hit",
      isNumber: true,
      isWide: true,
      value: (row) => row.total.tokens[0] / (prompt(row.total.tokens) || 1),
      cell: (row) => hitRate(row.total),
    },
    {
      label: "Lost",
      isNumber: true,
      isWide: true,
      value: (row) => row.lost,
      cell: (row) => (row.breaks.length ? lostText(row.breaks) : "–"),
    },
    { label: "Cost", isNumber: true, value: (row) => row.cost, cell: (row) => spent(row.total) },
  ];
  const table = new SortedTable("All sessions", columns, sessions, { sortBy: 6, rowsAtOnce: ROLL_ROWS });
  // Paper has no button for more.
  addEventListener("beforeprint", () => table.showAll());
  matchMedia("print").addEventListener("change", ({ matches }) => matches && table.showAll());
  return el("div", { class: "card" }, table.node);
}
