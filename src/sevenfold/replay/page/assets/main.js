/* The page, from top to bottom. */

const report = JSON.parse(byId("report").textContent);
const sessions = readSessions(report);

function fillSection(id, ...content) {
  byId(`${id}-body`).replaceChildren(...content.flat().filter(Boolean));
}

/* A section with nothing in it is not shown, and not offered. */
function dropSection(id) {
  byId(id).hidden = true;
  document.querySelector(`#nav a[href="#${id}"]`).parentElement.hidden = true;
}

function drawAll() {
  byId("headline").textContent = headline(report, sessions);
  byId("lede").textContent = lede(report, sessions);
  byId("notices").replaceChildren(...notices(report));
  byId("cards").replaceChildren(...cards(report, sessions));
  fillSection("about", about(report, sessions));
  byId("foot").replaceChildren(
    el(
      "p",
      {},
      `Made by sevenfold ${report.version}, ${moment(report.made_at)}. `,
      "This file needs no network and sends nothing.",
    ),
    el(
      "p",
      {},
      "It quotes project names, file paths and tool arguments from your sessions: ",
      "look through it before you pass it on.",
    ),
  );
  if (!report.total.calls) {
    for (const id of ["money", "sessions", "breaks", "contents", "results"]) dropSection(id);
    return;
  }
  const view = new SessionView(sessions);
  const goTo = (session, call) => view.goTo(session, call);
  fillSection("money", new MoneyView(report).node);
  fillSection("sessions", view.node);
  byId("sessions-body").classList.toggle("alone", sessions.length === 1);
  if (sessions.some((session) => session.breaks.length)) {
    fillSection("breaks", new BreakView(report, sessions, goTo).node);
  } else {
    fillSection("breaks", el("p", { class: "empty card" }, "None. Every call read all that it could."));
  }
  if (report.fill.shares.length) fillSection("contents", new FillView(report, sessions).node);
  else dropSection("contents");
  if (report.costly_results.length || report.repeated_reads.length)
    fillSection("results", resultsSection(report, sessions, goTo));
  else dropSection("results");
}

drawAll();
document.documentElement.dataset.drawn = "yes";
