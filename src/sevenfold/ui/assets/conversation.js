/* One session: its bill and context chart, and the conversation as it was said and as it was sent. */

import { get } from "/assets/api.js";
import {
  ContextPlot,
  byId,
  choice,
  count,
  el,
  facts,
  fillParts,
  grouped,
  hitRate,
  legend,
  lostFact,
  markIcon,
  moment,
  originOf,
  pathNode,
  plotKey,
  readSessions,
  spent,
  stackedBar,
  tokens,
  spellHidden,
} from "/assets/parts.js";

const AT_ONCE = 40;
const SOURCES = {
  human: "You",
  model: "Model",
  tool: "Tool result",
  attachment: "Added context",
  memory: "Memory",
  summary: "Summary",
  system_prompt: "System prompt",
};
const BLOCKS = { thinking: "Thinking", tool_use: "Tool call", tool_result: "Result", summary: "Summary", other: "" };

export async function showSession(place, { say }) {
  const detail = await get("session", { key: place.id });
  const [session] = readSessions({ sessions: [detail], causes: detail.causes });
  const plot = new ContextPlot();
  const hasPlot = session.series.call.length > 0;
  const view = place.options.get("view") === "sent" ? "sent" : "said";
  const reader = new Conversation(place.id, say);
  const parts = fillParts(session.fill);
  plot.node.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && plot.place !== null) reader.showCall(session.series.call[plot.place]);
  });
  return {
    nodes: [
      el("p", { class: "up" }, el("a", { href: "#/sessions" }, "← Sessions")),
      el("h1", {}, session.prompt || session.title, " ", el("small", {}, session.short)),
      el("p", { class: "origin" }, originOf(session)),
      session.project ? pathNode(session.project) : null,
      pathNode(session.path),
      el(
        "section",
        { class: "card panel", "aria-label": "Bill and context" },
        facts([
          ["Spent", spent(session.total)],
          ["Lost to breaks", lostFact(session.breaks)],
          ["Hit rate", hitRate(session.total)],
          ["Calls", grouped(session.total.calls)],
          ["Largest context", tokens(session.largest)],
          ["Cuts", grouped(session.cuts.length)],
        ]),
        hasPlot ? plot.tools : null,
        hasPlot ? plot.node : el("p", { class: "empty" }, "No call of this session has its usage in the log."),
        hasPlot ? plotKey(session) : null,
        hasPlot ? el("p", { class: "hint" }, "Enter on a call of the chart shows what was sent with it.") : null,
        el("h2", { class: "small" }, "What filled this context"),
        stackedBar("What filled this context", parts),
        legend(parts),
      ),
      reader.node,
    ],
    keys: {
      w: () => reader.turn(),
      "]": () => reader.stepCut(1),
      "[": () => reader.stepCut(-1),
    },
    ready: () => {
      if (hasPlot) plot.show(session, session.title);
      reader.start(view, place.options.get("call"));
    },
    leave: () => reader.stop(),
  };
}

class Conversation {
  constructor(key, say) {
    this.key = key;
    this.say = say;
    this.view = "said";
    this.call = null;
    this.run = 0;
    this.cuts = [];
    this.items = el("ol", { class: "messages" });
    this.found = el("p", { class: "found", role: "status" });
    this.more = el("button", { type: "button", class: "more", on: { click: () => this.load() } }, "Load more");
    this.cutList = el("div", { class: "cutlist" });
    this.number = el("input", { type: "number", id: "call-number", min: "1", value: "1", on: { change: () => this.showCall(Number(this.number.value) - 1) } });
    this.calls = el("div", { class: "field calls", hidden: true }, el("label", { for: "call-number" }, "Request of call"), this.number);
    this.switch = el("div", {});
    // The next messages come when the end of the list is near.
    this.watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.load(), { rootMargin: "600px" });
    this.node = el(
      "section",
      { class: "conversation", "aria-labelledby": "conversation-title" },
      el("h2", { id: "conversation-title" }, "The conversation"),
      el("div", { class: "filters" }, this.switch, this.calls),
      this.cutList,
      this.found,
      this.items,
      this.more,
    );
  }

  start(view, call) {
    this.open(view, call === null ? null : Number(call));
    this.watcher.observe(this.more);
  }

  stop() {
    this.run += 1;
    this.watcher.disconnect();
  }

  turn() {
    this.open(this.view === "said" ? "sent" : "said", this.call);
  }

  showCall(call) {
    this.open("sent", Math.max(0, call));
    this.node.scrollIntoView({ block: "start" });
  }

  async open(view, call) {
    this.view = view;
    this.call = call;
    this.run += 1;
    this.loaded = 0;
    this.total = null;
    this.isLoading = false;
    this.items.replaceChildren();
    this.switch.replaceChildren(
      choice(
        "Which form",
        [
          ["said", "As it was said"],
          ["sent", "As it was sent"],
        ],
        view,
        (chosen) => this.open(chosen, this.call),
      ),
    );
    this.calls.hidden = view === "said";
    await this.load();
  }

  query() {
    const query = { key: this.key, view: this.view };
    if (this.view === "sent" && this.call !== null) query.call = this.call;
    return query;
  }

  async load(least = 0) {
    if (this.isLoading || (this.total !== null && this.loaded >= this.total)) return;
    this.isLoading = true;
    const run = this.run;
    let answer;
    try {
      const limit = Math.min(200, Math.max(AT_ONCE, least - this.loaded + 1));
      answer = await get("messages", { ...this.query(), from: this.loaded, limit });
    } catch (error) {
      if (run === this.run) this.fail(error.message);
      return;
    }
    if (run !== this.run) return;
    this.isLoading = false;
    this.total = answer.total;
    this.loaded += answer.items.length;
    this.items.append(...answer.items.map((item) => (item.kind === "cut" ? this.cutNode(item) : this.messageNode(item))));
    this.more.hidden = this.loaded >= this.total;
    if (answer.from === 0) this.drawHead(answer);
    this.items.dataset.loaded = String(this.loaded);
  }

  fail(text) {
    this.found.replaceChildren(el("span", { class: "notice" }, text));
    this.more.hidden = true;
  }

  drawHead(answer) {
    this.cuts = answer.cuts;
    const last = answer.calls;
    this.number.max = String(Math.max(1, last));
    this.number.value = String(this.call === null ? Math.max(1, last) : Math.min(this.call + 1, last));
    const messages = answer.total - answer.cuts.length;
    this.found.textContent =
      this.view === "said"
        ? `${count(messages, "message")}, ${count(answer.cuts.length, "cut")}. Nothing is left out here.`
        : `${count(messages, "message")} in the request of call ${this.number.value} of ${grouped(last)}, as the model got them. System prompt and tools are in no transcript.`;
    this.cutList.replaceChildren(
      ...(answer.cuts.length
        ? [
            el("p", { class: "faint" }, "Cuts: "),
            el(
              "ul",
              { class: "chips" },
              answer.cuts.map((cut) => el("li", {}, el("button", { type: "button", class: "chip", on: { click: () => this.goTo(cut.n) } }, markIcon(cut.layer === 2 || cut.title === "Clearing" ? "clearing" : "compaction"), cut.title))),
            ),
          ]
        : []),
    );
  }

  async goTo(number) {
    while (this.loaded <= number && this.loaded < this.total) {
      const before = this.loaded;
      await this.load(number);
      if (this.loaded === before) return;
    }
    const node = byId(`item-${number}`);
    node?.focus();
    node?.scrollIntoView({ block: "center" });
  }

  stepCut(step) {
    if (!this.cuts.length) {
      this.say(this.view === "said" ? "This session has no cut." : "Cuts stand where the conversation is shown as it was said.");
      return;
    }
    const here = Number(document.activeElement?.id.replace("item-", "")) || 0;
    const next = step > 0 ? this.cuts.find((cut) => cut.n > here) : this.cuts.findLast((cut) => cut.n < here);
    this.goTo((next ?? this.cuts.at(step > 0 ? -1 : 0)).n);
  }

  cutNode(cut) {
    return el(
      "li",
      { class: "cut", id: `item-${cut.n}`, tabindex: "-1", "data-row": true },
      el("p", { class: "cut-title" }, markIcon(cut.layer === 2 || cut.title === "Clearing" ? "clearing" : "compaction"), el("b", {}, cut.title), cut.at === null ? "" : ` · ${moment(cut.at)}`),
      el("p", {}, cut.reason),
      cut.lines.length ? el("ul", {}, cut.lines.map((line) => el("li", {}, line))) : null,
      cut.call === null ? null : el("button", { type: "button", class: "link", on: { click: () => this.showCall(cut.call) } }, `See the request after it (call ${cut.call + 1})`),
    );
  }

  messageNode(item) {
    return el(
      "li",
      { class: `message ${item.role} from-${item.source}${item.note ? " noted" : ""}`, id: `item-${item.n}`, tabindex: "-1", "data-row": true },
      el(
        "p",
        { class: "who" },
        el("b", {}, SOURCES[item.source] ?? item.source),
        item.at === null ? null : el("small", {}, moment(item.at)),
        item.call === null ? null : el("button", { type: "button", class: "link small", on: { click: () => this.showCall(item.call) } }, `call ${item.call + 1}`),
      ),
      item.note ? el("p", { class: "note" }, item.note) : null,
      item.blocks.map((block, place) => this.blockNode(item, block, place)),
    );
  }

  blockNode(item, block, place) {
    const isStored = this.view === "said" && /in a file/.test(block.note);
    // What scrolls can be reached by keyboard.
    const scrolls = block.chars > 600 || block.text.split("\n").length > 8;
    const text = el("pre", { class: "text", tabindex: scrolls ? "0" : null, role: scrolls ? "region" : null, "aria-label": scrolls ? "Text" : null }, block.text);
    const label = [BLOCKS[block.kind], block.tool].filter(Boolean).join(": ");
    const clipped = block.chars > block.text.length;
    const whole = el("button", { type: "button", class: "link", on: { click: () => this.showWhole(item, place, text, whole) } }, isStored ? "Show the whole result" : `Show all ${grouped(block.chars)} characters`);
    return el(
      "div",
      { class: `block ${block.kind}${block.is_error ? " failed" : ""}` },
      label ? el("p", { class: "label" }, label, block.is_error ? el("b", { class: "bad" }, " failed") : null) : null,
      block.note ? el("p", { class: "note" }, block.note) : null,
      block.text ? text : null,
      clipped || isStored ? whole : null,
    );
  }

  async showWhole(item, place, text, button) {
    try {
      const answer = await get("block", { ...this.query(), n: item.n, block: place });
      text.textContent = spellHidden(answer.text);
      button.remove();
      text.tabIndex = 0;
      text.focus();
    } catch (error) {
      this.say(error.message, { isError: true });
    }
  }
}
