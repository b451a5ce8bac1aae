/* Elements. Text is only ever set as text: strangers wrote the names and commands in a report. */

const SVG = "http://www.w3.org/2000/svg";

/* Characters that show nothing, or change the order of others: a text could hide words by them. */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;

/* The same text with these spelled out. */
function spellHidden(text) {
  return text.replace(HIDDEN, (mark) => `\\u{${mark.codePointAt(0).toString(16)}}`);
}

function put(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, action] of Object.entries(value)) node.addEventListener(event, action);
    } else if (name === "vars") {
      // Through the object model: the page's policy refuses style attributes.
      for (const [key, setting] of Object.entries(value)) node.style.setProperty(key, setting);
    } else {
      node.setAttribute(name, value === true ? "" : value);
    }
  }
  node.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== "")
      .map((child) => (typeof child === "string" ? spellHidden(child) : child)),
  );
  return node;
}

function el(tag, props, ...children) {
  return put(document.createElement(tag), props, children);
}

function shape(tag, props, ...children) {
  return put(document.createElementNS(SVG, tag), props, children);
}

function byId(id) {
  return document.getElementById(id);
}

/* A path is known by its end: the beginning is cut off, and shown to who points at it. */
function pathNode(path) {
  return el("span", { class: "path", title: path }, el("bdi", {}, path));
}

function swatch(kind) {
  return el("i", { class: "swatch", vars: { "--paint": `var(--${kind})` }, "aria-hidden": "true" });
}

/* A few buttons of which one is pressed. */
function choice(label, options, chosen, onChoose) {
  const buttons = options.map(([value, text]) =>
    el(
      "button",
      { type: "button", "aria-pressed": String(value === chosen), on: { click: () => choose(value) } },
      text,
    ),
  );
  function choose(value) {
    buttons.forEach((button, place) =>
      button.setAttribute("aria-pressed", String(options[place][0] === value)),
    );
    onChoose(value);
  }
  return el("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}
