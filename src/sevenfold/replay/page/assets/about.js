/* The end of the page: what stands between its figures and the truth. */

function about(report, sessions) {
  const { lines, total } = report;
  const unbilled = sum(sessions.map((session) => session.unbilled));
  const uncounted = sum(sessions.map((session) => session.uncounted));
  const unpriced = report.models.filter((bill) => !bill.usd);
  const megabytes = (lines.bytes / 1e6).toFixed(1);
  const plain = [
    `Read: ${count(report.files, "file")}, ${megabytes} MB, ${count(lines.read, "line")}.`,
    "Billed tokens are those of the logs; dollars follow by the price of each model on the day of the call.",
    total.estimated_tokens
      ? `~ marks a figure that is estimated or holds an estimate. ${spellEstimated(total)}`
      : "~ marks a figure that is estimated.",
    ...report.remarks.map(sentence),
    unbilled ? `${count(unbilled, "call")} without usage in the log: in no figure.` : "",
    uncounted ? `${count(uncounted, "call")} not counted here: repeated by another file, or too early.` : "",
  ];
  return [
    el(
      "div",
      { class: "card prose" },
      el(
        "ul",
        {},
        plain.filter(Boolean).map((text) => el("li", {}, text)),
      ),
    ),
    ...(unpriced.length ? [unpricedCard(unpriced, new Set(report.unknown_models))] : []),
    ...(lines.unknown.length
      ? [
          countsCard(
            "Lines of a type not known here",
            lines.unknown,
            "They were skipped; nothing in them is counted.",
          ),
        ]
      : []),
    ...(lines.faults.length
      ? [
          countsCard(
            "Lines that could not be read",
            lines.faults,
            "A half-written last line is usual in a session that still runs.",
          ),
        ]
      : []),
    ...(report.unreadable_count ? [unreadableCard(report)] : []),
  ];
}

function spellEstimated(total) {
  const size = `${tokens(total.estimated_tokens)} tokens, ${usd(total.estimated_usd)}`;
  return `Some calls have no final output count in the log (${size}): theirs is taken from what the model wrote.`;
}

/* Why nobody can say what a model's calls cost. */
function spellGap(bill, unknown) {
  if (bill.gap === "speed") return "no price is known for that speed";
  if (bill.gap === "runs") return "not all runs inside its calls have a price";
  if (unknown.has(bill.model)) return "no table knows it";
  return "settings describe it and give no price";
}

function unpricedCard(models, unknown) {
  const named = models.filter((bill) => bill.is_named && bill.gap === "model");
  const settings = named.map(
    (bill) => `[models.${JSON.stringify(bill.model)}]\ninput_usd_per_mtok = …\noutput_usd_per_mtok = …`,
  );
  const told = models.map((bill) => {
    const name = bill.is_named ? bill.model : "Calls whose model the log does not name";
    const why = bill.is_named ? ` (${spellGap(bill, unknown)})` : "";
    return `${name}${why}: ${tokens(sum(bill.tokens))} tokens in ${count(bill.calls, "call")}`;
  });
  return el(
    "div",
    { class: "card prose", id: "unpriced" },
    el("h3", {}, "Models without a price"),
    el("p", {}, `${told.join("; ")}.`, " They are outside all dollar figures."),
    named.length
      ? el("p", {}, "To count them, give their prices in ", el("code", {}, "~/.sevenfold/settings.toml"), ":")
      : null,
    named.length
      ? el("pre", { tabindex: "0", "aria-label": "Settings to fill in" }, settings.join("\n\n"))
      : null,
  );
}

function countsCard(title, rows, remark) {
  return el(
    "div",
    { class: "card prose" },
    el("h3", {}, title),
    el("p", {}, remark),
    el(
      "ul",
      { class: "tally" },
      rows.map(([name, number]) => el("li", {}, el("code", {}, name), " ", grouped(number))),
    ),
  );
}

function unreadableCard(report) {
  const left = report.unreadable_count - report.unreadable.length;
  return el(
    "div",
    { class: "card prose", id: "unreadable" },
    el("h3", {}, "Files that could not be read"),
    el(
      "ul",
      {},
      report.unreadable.map(([path, reason]) => el("li", {}, pathNode(path), el("small", {}, reason))),
    ),
    left > 0 ? el("p", {}, `And ${grouped(left)} more; sevenfold replay --json lists them all.`) : null,
  );
}
