/* The first screen, and where the money went. */

function period(sessions) {
  const times = sessions
    .flatMap((session) => [session.first_at, session.last_at])
    .filter((at) => at !== null);
  if (!times.length) return "";
  // Not spread into Math.min: there may be tens of thousands.
  const [first, last] = [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))].map(
    day,
  );
  const when = first === last ? first : `${first} to ${last}`;
  return when.replaceAll("-", "\u2011"); // in running text, a date is not broken in two
}

function isPriced(total) {
  return total.calls > total.unpriced_calls;
}

function headline(report, sessions) {
  const mains = sessions.filter((session) => !session.sub_agent).length;
  const who = mains ? count(mains, "session") : count(sessions.length, "sub-agent");
  const { total } = report;
  if (isPriced(total)) return `${who} cost ${spent(total)}`;
  return `${who} used ${tokens(sum(total.tokens))} tokens`;
}

function lede(report, sessions) {
  const { total } = report;
  const subs = sessions.filter((session) => session.sub_agent).length;
  const breaks = sessions.flatMap((session) => session.breaks);
  const when = period(sessions);
  const helped = subs ? ` (with ${count(subs, "sub-agent")})` : "";
  const who = `${[count(total.calls, "call") + helped, when].filter(Boolean).join(", ")}.`;
  const bare =
    isPriced(total) && total.uncached
      ? ` Without the prompt cache: ${total.estimated_usd ? "~" : ""}${usd(total.uncached)}.`
      : "";
  if (!breaks.length) return who + bare;
  const lost = Object.fromEntries(report.causes.map((cause) => [cause, 0]));
  // Dollars decide; where nothing has a price, tokens do.
  for (const item of breaks) lost[item.cause] += item.usd || item.lost / 1e9;
  const causes = report.causes.filter((cause) => lost[cause]).sort((one, other) => lost[other] - lost[one]);
  const most = `${causes.length > 1 ? "most of it " : ""}${CAUSES[causes[0]].by}`;
  const unpriced = unpricedCount(breaks);
  const priced = breaks.length - unpriced;
  const which = unpriced ? `: the ${priced === 1 ? "one" : grouped(priced)} with a price` : "";
  return `${who}${bare} ${count(breaks.length, "cache break")}${which} cost ${lostText(breaks)}, ${most}.`;
}

/* Where on this page each figure is taken apart. */
const CARD_PLACES = {
  Spent: "money",
  "Without a cache": "money",
  "Cache hit rate": "money",
  "Lost to breaks": "breaks",
  Tokens: "money",
  "Not priced": "about",
  "Largest context": "sessions",
  "Would have saved": "advice",
};

function card(label, value, remark, meter) {
  return el(
    "div",
    { class: "card stat" },
    el("p", { class: "label" }, label),
    el(
      "p",
      // A per cent sign is as wide as two figures and more.
      { class: "value", vars: { "--chars": String(value.length + 2 * value.split("%").length - 2) } },
      el("a", { href: `#${CARD_PLACES[label]}` }, value),
    ),
    meter === undefined ? null : el("span", { class: "meter", vars: { "--length": String(meter) } }),
    el("p", { class: "remark" }, remark),
  );
}

function cards(report, sessions) {
  const { total } = report;
  const breaks = sessions.flatMap((session) => session.breaks);
  const cost = sum(total.usd);
  const about = total.estimated_usd ? "~" : "";
  const whole = prompt(total.tokens);
  const lost = sum(breaks.map((item) => item.usd));
  const unpriced = unpricedCount(breaks);
  const found = [];
  if (isPriced(total)) {
    found.push(
      card(
        "Spent",
        spent(total),
        about ? `${usd(total.estimated_usd)} of it is estimated output` : "by the counts in the logs",
      ),
    );
    found.push(
      card(
        "Without a cache",
        about + usd(total.uncached),
        `so the cache saved ${share(total.uncached - cost, total.uncached)}`,
      ),
    );
  }
  if (whole)
    found.push(
      card("Cache hit rate", hitRate(total), "of prompt tokens came from the cache", total.tokens[0] / whole),
    );
  if (!breaks.length) found.push(card("Lost to breaks", "nothing", "the cache never broke"));
  else if (lost)
    found.push(
      card(
        "Lost to breaks",
        usd(lost),
        share(lost, cost) +
          (unpriced
            ? ` of what was spent; ${count(unpriced, "unpriced break")}`
            : ` of what was spent, in ${count(breaks.length, "break")}`),
        lost / cost,
      ),
    );
  else
    found.push(
      card(
        "Lost to breaks",
        tokens(sum(breaks.map((item) => item.lost))),
        `tokens not read again, in ${count(breaks.length, "break")}`,
      ),
    );
  if (report.saving?.[1]) found.push(savingCard(report.saving));
  else
    found.push(
      card(
        "Tokens",
        tokens(sum(total.tokens)),
        `${tokens(whole)} prompt, ${total.estimated_tokens ? "~" : ""}${tokens(total.tokens[4])} output`,
      ),
    );
  if (total.unpriced_calls)
    found.push(
      card(
        "Not priced",
        tokens(total.unpriced_tokens),
        `tokens in ${count(total.unpriced_calls, "call")}, in no dollar figure`,
      ),
    );
  else
    found.push(
      card(
        "Largest context",
        tokens(sessions.reduce((most, session) => Math.max(most, session.largest), 0)),
        "tokens in one prompt",
      ),
    );
  return found;
}

/* What clearing old tool results would have saved, as a range. */
function savingCard([low, high, cost, count, all]) {
  const percent = (part) => `${Math.round(100 * part)}%`;
  const value = low ? `${percent(low)}–${percent(high)}` : `up to ${percent(high)}`;
  const dollars = low ? `${usd(low * cost)} to ${usd(high * cost)}` : `up to ${usd(high * cost)}`;
  const played = count === 1 ? "one session" : `${grouped(count)} sessions`;
  const of = count < all ? `${grouped(count)} of ${grouped(all)} sessions` : played;
  return card("Would have saved", value, `by Sevenfold: ${dollars} of what the prompts of ${of} cost`);
}

class MoneyView {
  constructor(report, onPick) {
    this.report = report;
    this.onPick = onPick;
    this.body = el("div", { class: "columns" });
    const hasBoth = isPriced(report.total);
    this.isUsd = hasBoth;
    const unit = hasBoth
      ? choice(
          "Unit",
          [
            ["usd", "Dollars"],
            ["tokens", "Tokens"],
          ],
          "usd",
          (value) => {
            this.isUsd = value === "usd";
            this.draw();
          },
        )
      : null;
    this.node = [unit, this.body].filter(Boolean);
    this.draw();
  }

  draw() {
    this.body.replaceChildren(
      el("div", { class: "card" }, el("h3", {}, "By kind"), ...this.kinds()),
      el("div", { class: "card" }, el("h3", {}, "By model"), this.models()),
    );
  }

  values(item) {
    return this.isUsd ? item.usd : item.tokens;
  }

  kinds() {
    const { total } = this.report;
    const values = this.values(total);
    const whole = sum(values);
    const rows = KINDS.map((kind, place) => ({ ...kind, place })).filter(({ place }) => total.tokens[place]);
    const mark = (place) => (place === 4 && total.estimated_tokens ? "~" : "");
    return [
      stackedBar(
        this.isUsd ? "Dollars by kind" : "Tokens by kind",
        kindParts(values, this.isUsd ? usd : tokens),
      ),
      el(
        "table",
        { class: "kinds" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            ["Kind", "Tokens", isPriced(total) ? "Dollars" : "", "Share"].map((name, place) =>
              el("th", { scope: "col", class: place ? "number" : null }, name),
            ),
          ),
        ),
        el(
          "tbody",
          {},
          rows.map(({ key, label, place }) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, swatch(key), label),
              el("td", { class: "number" }, mark(place) + tokens(total.tokens[place])),
              el("td", { class: "number" }, isPriced(total) ? mark(place) + usd(total.usd[place]) : ""),
              el("td", { class: "number faint" }, share(values[place], whole)),
            ),
          ),
        ),
      ),
    ];
  }

  models() {
    const { models } = this.report;
    const size = (bill) => sum(this.values(bill) ?? []);
    const most = Math.max(...models.map(size), 0);
    return el(
      "ul",
      { class: "bars" },
      models.map((bill) => {
        const about = bill.estimated_calls ? "~" : "";
        const worth = bill.usd ? about + usd(sum(bill.usd)) : "unpriced";
        return el(
          "li",
          {},
          el(
            "span",
            { class: "name" },
            el(
              "button",
              {
                type: "button",
                class: "link",
                title: "List its sessions",
                on: { click: () => this.onPick(bill.model) },
              },
              bill.model,
            ),
          ),
          el(
            "b",
            { class: this.isUsd && !bill.usd ? "faint" : null },
            this.isUsd ? worth : tokens(sum(bill.tokens)),
          ),
          this.values(bill)
            ? stackedBar(
                bill.model,
                kindParts(this.values(bill), this.isUsd ? usd : tokens),
                most ? size(bill) / most : 0,
              )
            : null,
          el(
            "small",
            { class: "facts" },
            [
              count(bill.calls, "call"),
              `${tokens(prompt(bill.tokens))} prompt`,
              `${share(bill.tokens[0], prompt(bill.tokens))} hit`,
              `${about}${tokens(bill.tokens[4])} output`,
            ].join(" · "),
          ),
        );
      }),
    );
  }
}

function notices(report) {
  const found = [];
  if (report.origin === "sample")
    found.push("No session of yours was found, so this is the sample that comes with Sevenfold.");
  if (report.simulated) found.push(report.simulated);
  if (report.repriced) found.push(`Every call is counted at the prices that ${report.repriced} has today.`);
  return found.map((text) => el("p", { class: "notice" }, text));
}
