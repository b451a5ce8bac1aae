/* One tooltip for the whole page. It repeats what stands elsewhere, so screen readers need not see it. */

const tip = byId("tooltip");
tip.setAttribute("aria-hidden", "true");

/* Beside a place of the window, never over its edge. */
function showTip(x, y, ...content) {
  tip.replaceChildren(...content.flat());
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const left = x + 14 + width <= room - 8 ? x + 14 : x - 14 - width;
  const top = y - height - 12 >= 8 ? y - height - 12 : y + 18;
  // In the page and not in the window: it stays with what it explains when the page is scrolled.
  tip.style.left = `${scrollX + Math.max(8, Math.min(left, room - width - 8))}px`;
  tip.style.top = `${scrollY + top}px`;
}

function hideTip() {
  tip.hidden = true;
}

function tipTitle(text, kind) {
  return el("p", { class: "tip-title" }, kind ? swatch(kind) : null, text);
}

function tipRows(rows) {
  return el(
    "dl",
    {},
    rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
  );
}

/* A tooltip while a pointer is over a node; a finger's tap shows it too. */
function explain(node, content) {
  const show = (event) => showTip(event.clientX, event.clientY, content());
  node.addEventListener("pointerenter", show);
  node.addEventListener("pointermove", show);
  node.addEventListener("pointerdown", show);
  node.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hideTip());
}

/* A finger leaves no place, so it takes a tap elsewhere. */
addEventListener("pointerdown", (event) => event.target.closest?.(".plot, .segment") || hideTip());
addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
