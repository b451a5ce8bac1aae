/* What it cost by day, week, project and model. */

const PERIODS = {
  day: "Days",
  week: "Weeks",
  project: "Projects",
  model: "Models",
};

/* The Monday of a day's week. */
function weekOf(day) {
  const at = new Date(`${day}T12:00:00Z`);
  at.setUTCDate(at.getUTCDate() - ((at.getUTCDay() + 6) % 7));
  return at.toISOString().slice(0, 10);
}

function periodKey(kind, session, [day, model]) {
  if (kind === "project") return session.project || "no project";
  if (kind === "model") return model;
  if (!day) return "no date";
  return kind === "week" ? weekOf(day) : day;
}

/* A sub-agent has its session's id. */
function countOwn(row) {
  return new Set([...row.sessions].map((session) => session.id)).size;
}

function groupDays(sessions, kind) {
  const groups = new Map();
  for (const session of sessions) {
    for (const row of session.days) {
      const key = periodKey(kind, session, row);
      if (!groups.has(key))
        groups.set(key, {
          key,
          sessions: new Set(),
          calls: 0,
          read: 0,
          prompt: 0,
          output: 0,
          usd: null,
          isEstimated: false,
        });
      const group = groups.get(key);
      const [, , calls, [read, whole, output], cost, isEstimated] = row;
      group.sessions.add(session);
      group.calls += calls;
      group.read += read;
      group.prompt += whole;
      group.output += output;
      group.usd = cost === null ? group.usd : (group.usd ?? 0) + cost;
      group.isEstimated ||= Boolean(isEstimated && cost !== null);
    }
  }
  return [...groups.values()];
}

class PeriodView {
  constructor(sessions, onPick) {
    this.sessions = sessions;
    this.onPick = onPick;
    this.body = el("div", { class: "card" });
    this.node = [
      choice("What to add up by", Object.entries(PERIODS), "day", (kind) => this.draw(kind)),
      this.body,
    ];
    this.draw("day");
  }

  draw(kind) {
    const rows = groupDays(this.sessions, kind);
    const isTime = kind === "day" || kind === "week";
    const most = rows.reduce((largest, row) => Math.max(largest, row.usd ?? 0), 0);
    const table = new SortedTable(
      `What it cost by ${kind}`,
      [
        {
          label: { day: "Day", week: "Week of", project: "Project", model: "Model" }[kind],
          class: "what",
          isDown: isTime,
          value: (row) => row.key,
          cell: (row) => [this.link(kind, row), meterNode(row.usd, most)],
        },
        {
          label: "Sessions",
          isNumber: true,
          isWide: true,
          value: countOwn,
          cell: (row) => grouped(countOwn(row)),
        },
        {
          label: "Calls",
          isNumber: true,
          isWide: true,
          value: (row) => row.calls,
          cell: (row) => grouped(row.calls),
        },
        {
          label: "Tokens",
          isNumber: true,
          isWide: true,
          value: (row) => row.prompt + row.output,
          cell: (row) => tokens(row.prompt + row.output),
        },
        {
          label: "Hit",
          isNumber: true,
          isWide: true,
          value: (row) => (row.prompt ? row.read / row.prompt : null),
          cell: (row) => share(row.read, row.prompt),
        },
        {
          label: "Cost",
          isNumber: true,
          value: (row) => row.usd,
          cell: (row) => (row.usd === null ? "unpriced" : (row.isEstimated ? "~" : "") + usd(row.usd)),
        },
      ],
      rows,
      { sortBy: isTime ? 0 : 5 },
    );
    this.body.replaceChildren(table.node);
  }

  /* To the sessions that a row adds up. */
  link(kind, row) {
    return el(
      "button",
      {
        type: "button",
        class: "link",
        title: "List its sessions",
        on: { click: () => this.onPick(`${PERIODS[kind].slice(0, -1)} ${clip(row.key)}`, row.sessions) },
      },
      kind === "project" ? pathNode(row.key) : row.key,
    );
  }
}

function meterNode(cost, most) {
  return el("span", { class: "meter", vars: { "--length": String(most && cost ? cost / most : 0) } });
}
