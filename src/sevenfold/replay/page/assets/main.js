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
  linkCards();
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
      report.is_anonymous
        ? "Paths, names of projects and files, commands and prompts were left out."
        : "It quotes the first words, project names, file paths and tool arguments of your sessions: " +
            "look through it before you pass it on, or make it with --anonymous.",
    ),
  );
  if (!report.total.calls) {
    for (const id of ["advice", "money", "periods", "sessions", "roll", "breaks", "contents", "results"]) dropSection(id);
    return;
  }
  const view = new SessionView(sessions);
  const goTo = (session, call) => view.goTo(session, call);
  const pickModel = (model) => {
    const used = sessions.filter((session) => session.models.includes(model));
    if (used.length) view.showOnly(`Model ${clip(model)}`, new Set(used));
  };
  fillSection("money", new MoneyView(report, pickModel).node);
  fillSection("sessions", view.node);
  byId("sessions-body").classList.toggle("alone", sessions.length === 1);
  if (sessions.some((session) => session.days.length)) {
    fillSection("periods", new PeriodView(sessions, (label, picked) => view.showOnly(label, picked)).node);
  } else dropSection("periods");
  let breaks = null;
  if (sessions.some((session) => session.breaks.length)) {
    breaks = new BreakView(report, sessions, goTo);
    fillSection("breaks", breaks.node);
  } else {
    fillSection("breaks", el("p", { class: "empty card" }, "None. Every call read all that it could."));
  }
  if (report.advice.length) {
    const links = { onShow: goTo, onCause: (cause) => breaks?.filter(cause) };
    fillSection("advice", new AdviceView(report, sessions, links).node);
  } else dropSection("advice");
  if (sessions.length > 1) fillSection("roll", sessionTable(sessions, goTo));
  else dropSection("roll");
  if (report.fill.shares.length) fillSection("contents", new FillView(report, sessions).node);
  else dropSection("contents");
  if (report.costly_results.length || report.repeated_reads.length)
    fillSection("results", resultsSection(report, sessions, goTo));
  else dropSection("results");
}

/* Each figure of the first screen leads to where it comes from. */
function linkCards() {
  for (const node of document.querySelectorAll("#cards a")) {
    const target = byId(node.hash.slice(1));
    if (!target || target.hidden) node.removeAttribute("href");
  }
}

/* While `--watch` writes the file anew, it is loaded again whenever nobody is at work on the page. */
function keepFresh(seconds) {
  let last = Date.now();
  for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"])
    addEventListener(kind, () => (last = Date.now()), { passive: true });
  setInterval(() => {
    if (!document.hidden && Date.now() - last > 1000 * seconds) location.reload();
  }, 1000 * seconds);
}

drawAll();
if (report.refresh_seconds) keepFresh(report.refresh_seconds);
document.documentElement.dataset.drawn = "yes";
