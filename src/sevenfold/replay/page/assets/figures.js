/* Numbers for people, in the same forms as on the terminal. */

const KINDS = [
  { key: "read", label: "Cache read" },
  { key: "write5", label: "Cache write, 5 min" },
  { key: "write1", label: "Cache write, 1 h" },
  { key: "fresh", label: "Fresh" },
  { key: "output", label: "Output" },
];

const CAUSES = {
  idle: {
    label: "Idle",
    long: "idle longer than the cache lives",
    by: "after pauses longer than the cache lives",
    why:
      "The next call came after the cached prompt had expired, 5 minutes or an hour after its last use. " +
      "All of it was paid for again.",
  },
  compaction: {
    label: "Compaction",
    long: "compaction",
    by: "by compaction",
    why:
      "A summary took the place of the conversation, so what follows the fixed beginning was new to the cache. " +
      "That is the price of compacting, not a fault.",
  },
  clearing: {
    label: "Clearing",
    long: "old tool results cleared",
    by: "by clearing old tool results",
    why:
      "Old tool results were taken out of the middle of the context. Everything after the first of them was " +
      "written to the cache again.",
  },
  "model switch": {
    label: "Model switch",
    long: "model switched",
    by: "by switching the model",
    why: "Each model has a cache of its own, so the first call on another one starts cold.",
  },
  unexplained: {
    label: "Unexplained",
    long: "unexplained by the log",
    by: "for reasons that the log does not show",
    why:
      "Nothing in the log explains these: changed tools or instructions are not recorded, and a provider may " +
      "drop an entry early.",
  },
  "system prompt": {
    label: "System prompt",
    long: "system prompt changed",
    by: "by a changed system prompt",
    why: "The request that was recorded has another system prompt than the one before, so everything behind it was new.",
  },
  tools: {
    label: "Tools",
    long: "tools changed",
    by: "by changed tools",
    why: "The request that was recorded declares other tools than the one before. They stand before everything else.",
  },
  parameters: {
    label: "Parameters",
    long: "parameters changed",
    by: "by changed parameters",
    why: "The request that was recorded has other parameters than the one before, such as for thinking.",
  },
  history: {
    label: "History",
    long: "earlier messages changed",
    by: "by changed messages",
    why: "The request that was recorded has other messages where the one before had some that were cached.",
  },
};

/* Order of the stacked bars: what the user can change comes first. */
const FILLS = {
  tool_result: "Tool results",
  tool_request: "Tool requests",
  assistant: "What the model wrote",
  thinking: "Thinking",
  human: "What people wrote",
  attachment: "Attachments and reminders",
  memory: "Memory and instructions",
  summary: "Summaries of compaction",
  system_prompt: "System prompt",
  tool_schema: "Tool schemas",
  unlogged: "System prompt, tools: not in the log",
};

function tokens(count) {
  for (const [unit, letter] of [
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "K"],
  ]) {
    if (Math.abs(count) >= unit) {
      const value = count / unit;
      return value.toFixed(Math.abs(value) < 99.95 ? 1 : 0) + letter;
    }
  }
  return String(count);
}

/* By hand: to load a browser's formatter of numbers takes longer than to read the whole report. */
function grouped(number, places = 0) {
  const [whole, rest] = number.toFixed(places).split(".");
  const parted = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? parted : `${parted}.${rest}`;
}

function usd(amount) {
  if (amount === null || amount === undefined) return "unpriced";
  const size = Math.abs(amount);
  const places = size === 0 || size >= 1 ? 2 : size >= 0.1 ? 3 : 4;
  return (amount < 0 ? "-$" : "$") + grouped(size, places);
}

function share(part, whole) {
  return whole ? ((100 * part) / whole).toFixed(1) + "%" : "–";
}

function span(seconds) {
  if (seconds === null) return "?";
  for (const [unit, word] of [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
  ]) {
    if (Math.abs(seconds) >= unit) return (seconds / unit).toFixed(1).replace(/\.0$/, "") + " " + word;
  }
  return Math.round(seconds) + " s";
}

function two(number) {
  return String(number).padStart(2, "0");
}

/* The reader's own time zone: a session is remembered by the clock on the wall. */
function day(seconds) {
  if (seconds === null) return "no date";
  const at = new Date(seconds * 1000);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

function clock(seconds, isFine = false) {
  const at = new Date(seconds * 1000);
  return `${two(at.getHours())}:${two(at.getMinutes())}` + (isFine ? `:${two(at.getSeconds())}` : "");
}

function moment(seconds) {
  return seconds === null ? "no time" : `${day(seconds)} ${clock(seconds)}`;
}

function count(number, thing) {
  return `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/* A name at a readable length; whoever shows it shows the whole somewhere, too. */
function clip(text, most = 48) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function sentence(text) {
  return text && `${text[0].toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + (number ?? 0), 0);
}

/* Prompt tokens of a row of counts: all but the output. */
function prompt(counts) {
  return sum(counts.slice(0, 4));
}

function hitRate(total) {
  return share(total.tokens[0], prompt(total.tokens));
}

/* A session's or the whole report's dollars, or that it has none. */
function spent(total) {
  if (total.calls && total.unpriced_calls === total.calls) return "unpriced";
  return (total.estimated_usd ? "~" : "") + usd(sum(total.usd));
}
