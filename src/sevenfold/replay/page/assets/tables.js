/* Tables that sort by any column, and show a page's worth of rows at a time. */

const ROWS_AT_ONCE = 15;

/*
 * columns: { label, value(row), cell(row), isNumber, isWide, isDown, class }: `value` is what it sorts by,
 * `cell` what it shows, `isWide` columns are left out on a phone; numbers and `isDown` columns begin with the
 * largest.
 */
class SortedTable {
  constructor(caption, columns, rows, { sortBy = null, isDown = true, rowsAtOnce = ROWS_AT_ONCE } = {}) {
    this.columns = columns;
    this.rows = rows;
    this.sortBy = sortBy;
    this.isDown = isDown;
    this.rowsAtOnce = rowsAtOnce;
    this.most = rowsAtOnce;
    this.heads = columns.map((column, place) => this.makeHead(column, place));
    this.body = el("tbody");
    this.more = el("button", { type: "button", class: "more", on: { click: () => this.showMore() } });
    this.node = el(
      "div",
      { class: "table" },
      el(
        "table",
        {},
        el("caption", { class: "unseen" }, caption),
        el("thead", {}, el("tr", {}, this.heads)),
        this.body,
      ),
      this.more,
    );
    this.draw();
  }

  makeHead(column, place) {
    const classes = cellClass(column);
    if (!column.value) return el("th", { scope: "col", class: classes }, column.label);
    return el(
      "th",
      { scope: "col", class: classes },
      el("button", { type: "button", on: { click: () => this.sort(place) } }, column.label),
    );
  }

  sort(place) {
    const { isNumber, isDown } = this.columns[place];
    this.isDown = this.sortBy === place ? !this.isDown : Boolean(isNumber || isDown);
    this.sortBy = place;
    this.draw();
  }

  setRows(rows) {
    this.rows = rows;
    this.most = this.rowsAtOnce;
    this.draw();
  }

  showAll() {
    this.most = this.rows.length;
    this.draw();
  }

  showMore() {
    const before = this.most;
    this.most += 5 * ROWS_AT_ONCE;
    this.draw();
    // The button may be gone now; the reader goes on with the first new row.
    this.body.rows[before]?.querySelector("button")?.focus();
  }

  ordered() {
    if (this.sortBy === null) return this.rows;
    const value = this.columns[this.sortBy].value;
    const sign = this.isDown ? -1 : 1;
    return [...this.rows].sort((one, other) => compare(value(one), value(other), sign));
  }

  draw() {
    this.heads.forEach((head, place) => {
      if (!this.columns[place].value) return;
      const order = place !== this.sortBy ? "none" : this.isDown ? "descending" : "ascending";
      head.setAttribute("aria-sort", order);
    });
    const rows = this.ordered();
    this.body.replaceChildren(
      ...rows.slice(0, this.most).map((row) =>
        el(
          "tr",
          {},
          this.columns.map((column) => el("td", { class: cellClass(column) }, column.cell(row))),
        ),
      ),
    );
    const left = rows.length - this.most;
    this.more.hidden = left <= 0;
    this.more.textContent = `Show ${Math.min(left, 5 * ROWS_AT_ONCE)} more of ${grouped(left)}`;
  }
}

function cellClass(column) {
  return (
    [column.isNumber ? "number" : "", column.isWide ? "wide" : "", column.class ?? ""].join(" ").trim() ||
    null
  );
}

/* What is not known comes last, whichever way up. */
function compare(one, other, sign) {
  if (one === null || other === null) return (one === null) - (other === null);
  return sign * (typeof one === "string" ? one.localeCompare(other) : one - other);
}
