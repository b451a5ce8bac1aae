/* The frame of the page: which part is shown, keys, messages to the user, and what follows from events. */

import { get, listen } from "/assets/api.js";
import { showDreams, showSpend, showTeam } from "/assets/background.js";
import { showSession } from "/assets/conversation.js";
import { showMemories, showMemory, showRecall, showReview, showRules } from "/assets/memories.js";
import { byId, count, el, spellHidden } from "/assets/parts.js";
import { showLive, showSessions } from "/assets/sessions.js";

const PAGES = {
  sessions: { label: "Sessions", key: "s", show: showSessions, topics: ["sessions"] },
  live: { label: "Live", key: "l", show: showLive, topics: ["live"] },
  memories: { label: "Memories", key: "m", show: showMemories, topics: ["memories"] },
  review: { label: "Review", key: "v", show: showReview, topics: ["memories"] },
  recall: { label: "Recall", key: "c", show: showRecall, topics: [] },
  rules: { label: "Rules", key: "r", show: showRules, topics: ["memories"] },
  dreams: { label: "Dreams", key: "d", show: showDreams, topics: ["memories"] },
  spend: { label: "Spend", key: "p", show: showSpend, topics: [] },
  team: { label: "Team", key: "t", show: showTeam, topics: ["memories"] },
  session: { show: showSession, topics: [], parent: "sessions" },
  memory: { show: showMemory, topics: ["memories"], parent: "memories" },
};

const KEYS = [
  ["g then a letter", "Go to a page: s sessions, l live, m memories, v review, c recall, r rules, d dreams, p spend, t team"],
  ["/", "Search on this page"],
  ["j and k", "The next and the previous row, message or change"],
  ["Enter", "Open the row"],
  ["u", "Up: from a session or a memory back to its list"],
  ["w", "In a session: switch between what was said and what was sent"],
  ["[ and ]", "In a session: the previous and the next cut"],
  ["a and x", "In the review: accept or reject what is selected"],
  ["z", "In memories: undo the last change"],
  ["?", "Show or hide these keys"],
  ["Escape", "Close, or leave a field"],
];

const main = byId("main");
let shown = { page: null, keys: {} };
let drawing = 0;
let awaitsPage = false;

/* Where the address leads: the page, what it is about, and options. */
function readPlace() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const page = PAGES[name] ? name : "sessions";
  return { page, id: decodeURIComponent(rest.join("/")), options: new URLSearchParams(query ?? "") };
}

async function draw({ isRefresh = false } = {}) {
  const place = readPlace();
  const number = (drawing += 1);
  const page = PAGES[place.page];
  markNav(page.parent ?? place.page);
  if (!isRefresh) {
    shown.leave?.();
    main.replaceChildren(el("p", { class: "loading" }, "Loading …"));
    document.documentElement.dataset.drawn = "no";
  }
  let content;
  try {
    content = await page.show(place, { say, redraw: () => draw({ isRefresh: true }) });
  } catch (error) {
    content = { nodes: [el("h1", {}, "This cannot be shown"), el("p", { class: "notice", role: "alert" }, error.message)] };
  }
  if (number !== drawing) return; // the reader has gone elsewhere meanwhile
  const focused = isRefresh ? document.activeElement?.id : null;
  main.replaceChildren(...content.nodes.flat(Infinity).filter(Boolean));
  if (focused) byId(focused)?.focus({ preventScroll: true });
  shown = { page: place.page, keys: {}, ...content };
  const title = main.querySelector("h1")?.textContent;
  document.title = title ? `${title} – Sevenfold` : "Sevenfold";
  if (!isRefresh) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  content.ready?.();
  document.documentElement.dataset.drawn = "yes";
}

function markNav(name) {
  for (const link of byId("nav").querySelectorAll("a")) {
    if (link.dataset.page === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function makeNav() {
  byId("nav")
    .querySelector("ul")
    .replaceChildren(
      ...Object.entries(PAGES)
        .filter(([, page]) => page.label)
        .map(([name, page]) =>
          el(
            "li",
            {},
            el(
              "a",
              { href: `#/${name}`, "data-page": name, "aria-keyshortcuts": `g ${page.key}` },
              page.label,
              el("span", { class: "badge", id: `badge-${name}`, hidden: true }),
            ),
          ),
        ),
    );
}

function setBadge(name, number, thing) {
  const badge = byId(`badge-${name}`);
  badge.hidden = !number;
  badge.replaceChildren(
    String(number),
    el("span", { class: "unseen" }, ` ${count(number, thing).replace(/^\S+ /, "")}`),
  );
}

function say(text, { isError = false } = {}) {
  const status = byId("status");
  status.textContent = spellHidden(text);
  status.classList.toggle("error", isError);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => (status.textContent = ""), 8000);
}

function takeEvent(name, value) {
  if (name === "offline") {
    document.documentElement.dataset.offline = String(value);
    if (value) say("The server does not answer. Is `sevenfold ui` still running?", { isError: true });
    return;
  }
  if (name === "live") setBadge("live", value.sessions.filter((one) => one.state === "working").length, "working session");
  if (name === "memories") setBadge("review", value.waiting, "change to review");
  const before = takeEvent.last?.[name];
  takeEvent.last = { ...takeEvent.last, [name]: JSON.stringify(value) };
  if (before === takeEvent.last[name]) return;
  if (shown.take?.(name, value)) return;
  // The first word on a topic says only how things are.
  if (before !== undefined && PAGES[shown.page]?.topics.includes(name)) draw({ isRefresh: true });
}

/* Keys. */

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable]") && target.type !== "checkbox";
}

function rows() {
  return [...main.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
}

function stepRow(step) {
  const all = rows();
  const here = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[here === -1 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, here + step))];
  if (!next) return;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

function pressKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (awaitsPage) {
    awaitsPage = false;
    const found = Object.entries(PAGES).find(([, page]) => page.key === event.key);
    if (found) location.hash = `#/${found[0]}`;
    return;
  }
  const acts = {
    g: () => (awaitsPage = true),
    "/": () => main.querySelector("input[type=search], textarea")?.focus(),
    j: () => stepRow(1),
    k: () => stepRow(-1),
    u: () => PAGES[shown.page]?.parent && (location.hash = `#/${PAGES[shown.page].parent}`),
    "?": toggleHelp,
    ...shown.keys,
  };
  const act = acts[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function toggleHelp() {
  const help = byId("help");
  if (help.open) {
    help.close();
    return;
  }
  help.replaceChildren(
    el("h2", { id: "help-title" }, "Keys"),
    el(
      "dl",
      { class: "keylist" },
      KEYS.map(([key, what]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, what))),
    ),
    el("button", { type: "button", class: "more", on: { click: () => help.close() } }, "Close"),
  );
  help.showModal();
}

makeNav();
byId("help-button").addEventListener("click", toggleHelp);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => draw());
addEventListener("keydown", pressKey);
await draw();
listen(takeEvent);
get("review").then(({ waiting }) => setBadge("review", waiting.length, "change to review"), () => {});
