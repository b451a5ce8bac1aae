/* What to do: advice with dollars, where they come from, and what to type. */

function adviceAmount({ low, high, is_estimated: isEstimated }) {
  const about = isEstimated ? "~" : "";
  if (!low) return `up to ${about}${usd(high)}`;
  return low === high ? about + usd(high) : `${about}${usd(low)} to ${usd(high)}`;
}

/* Where the figures of each kind stand on this page. */
const ADVICE_PLACES = {
  clearing: ["contents", "What fills the context"],
  pauses: ["breaks", "These breaks"],
  breaks: ["breaks", "These breaks"],
  reads: ["reads", "These files"],
  results: ["results", "These results"],
  servers: ["contents", "What fills the context"],
};

class AdviceView {
  constructor(report, sessions, { onShow, onCause }) {
    this.sessions = sessions;
    this.onShow = onShow;
    this.onCause = onCause;
    this.spent = sum(report.total.usd);
    this.node = el(
      "ol",
      { class: "advice" },
      report.advice.map((item) => this.item(item)),
    );
  }

  item(item) {
    const [place, label] = ADVICE_PLACES[item.kind];
    return el(
      "li",
      { class: "card" },
      el(
        "div",
        { class: "advice-sum" },
        el("b", {}, adviceAmount(item)),
        el("small", {}, `${item.low === item.high ? "" : "up to "}${share(item.high, this.spent)} of what was spent`),
      ),
      el(
        "div",
        {},
        el("h3", {}, item.title),
        el("p", {}, item.why),
        el("p", {}, withCode(item.action)),
        item.command ? commandNode(item.command) : null,
        item.evidence.length
          ? el(
              "ul",
              { class: "evidence" },
              item.evidence.map((row) => this.evidence(row)),
            )
          : null,
        el(
          "a",
          { class: "source", href: `#${place}`, on: { click: () => item.cause && this.onCause(item.cause) } },
          `${label} on this page`,
        ),
      ),
    );
  }

  evidence([text, place, at, cost]) {
    const session = place === null ? null : this.sessions[place];
    return el(
      "li",
      {},
      cost === null ? null : el("b", {}, `${usd(cost)} `),
      session
        ? el(
            "button",
            {
              type: "button",
              class: "link",
              title: "Show it in its session",
              on: { click: () => this.onShow(session, callAt(session, at)) },
            },
            at === null ? clip(session.title) : `${clip(session.title)}, ${moment(at)}`,
          )
        : null,
      ` ${text}`,
    );
  }
}

/* What stands in backticks as code. */
function withCode(text) {
  return text.split("`").map((part, place) => (place % 2 ? el("code", {}, part) : part));
}

/* A command or setting, with a button that copies it. */
function commandNode(command) {
  const copy = el(
    "button",
    {
      type: "button",
      class: "copy",
      on: {
        click: async () => {
          try {
            await navigator.clipboard.writeText(command);
            copy.textContent = "Copied";
          } catch {
            copy.textContent = "Select it to copy";
          }
        },
      },
    },
    "Copy",
  );
  return el("div", { class: "command" }, el("pre", { tabindex: "0", "aria-label": "To copy" }, command), copy);
}
