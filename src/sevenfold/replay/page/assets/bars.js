/* Stacked bars. Whatever a bar shows stands beside it as text as well. */

/* parts: { kind, label, value, text }. The bar is as long as `scale` of its room. */
function stackedBar(label, parts, scale = 1) {
  const seen = parts.filter((part) => part.value > 0);
  const whole = sum(seen.map((part) => part.value));
  const segments = seen.map((part) => {
    const segment = el("span", {
      class: "segment",
      vars: { "--paint": `var(--${part.kind})`, "flex-grow": String(part.value / whole) },
    });
    explain(segment, () => [
      tipTitle(part.label, part.kind),
      tipRows([[part.text, share(part.value, whole)]]),
    ]);
    return segment;
  });
  const spoken = seen.map((part) => `${part.label} ${share(part.value, whole)}`).join(", ");
  return el(
    "div",
    {
      class: "bar",
      role: "img",
      "aria-label": `${label}: ${spoken || "nothing"}`,
      vars: { "--length": String(scale) },
    },
    segments,
  );
}

function kindParts(values, spell) {
  return KINDS.map((kind, place) => ({
    kind: kind.key,
    label: kind.label,
    value: values[place],
    text: spell(values[place]),
  }));
}

function fillParts(kinds) {
  return Object.entries(FILLS).map(([kind, label]) => ({
    kind: `fill-${kind}`,
    label,
    value: kinds[kind] ?? 0,
    text: `${tokens(kinds[kind] ?? 0)} tokens`,
  }));
}

/* The key to a bar, as a list. */
function legend(parts) {
  const whole = sum(parts.map((part) => part.value));
  return el(
    "ul",
    { class: "legend" },
    parts
      .filter((part) => part.value > 0)
      .map((part) =>
        el("li", {}, swatch(part.kind), el("span", {}, part.label), el("b", {}, share(part.value, whole))),
      ),
  );
}
