/* Elements. Text is only ever set as text: strangers wrote the names and commands in a report. */

const SVG = "http://www.w3.org/2000/svg";

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
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""),
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
