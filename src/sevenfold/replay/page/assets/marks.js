/* Marks on a plot: where the cache broke or the context was cut. Told apart by shape, not colour alone. */

const RANK = { clearing: 0, break: 1, compaction: 2 };

/* What happened at which call, each with a shape and the words for it. */
function collectMarks(session) {
  const marks = new Map();
  const add = (call, kind, text) => {
    if (call === null) return;
    const mark = marks.get(call) ?? { call, kind, lines: [] };
    if (RANK[kind] > RANK[mark.kind]) mark.kind = kind;
    mark.lines.push([kind, text]);
    marks.set(call, mark);
  };
  for (const [call, , kind, one, other] of session.cuts) {
    add(call, kind, kind === "compaction" ? spellCompaction(one, other) : spellClearing(one, other));
  }
  for (const item of session.breaks) add(item.call, "break", spellBreak(item));
  return [...marks.values()].sort((one, other) => one.call - other.call);
}

function spellCompaction(before, after) {
  const known = (size) => (size === null ? "?" : tokens(size));
  return `Compaction: ${known(before)} to ${known(after)} tokens`;
}

function spellClearing(results, saved) {
  return `${count(results, "tool result")} cleared` + (saved === null ? "" : `, ${tokens(saved)} tokens`);
}

function spellBreak(item) {
  const idle =
    item.cause === "idle" && item.life ? ` (${span(item.gap)}, the entry lived ${span(item.life)})` : "";
  const cost = item.usd === null ? "" : ` for ${usd(item.usd)}`;
  return `Cache break, ${CAUSES[item.cause].long}${idle}: ${tokens(item.lost)} tokens again${cost}`;
}

function markShape(kind, x, y) {
  if (kind === "break") return shape("path", { d: `M${x - 6},${y - 5}H${x + 6}L${x},${y + 6}Z` });
  if (kind === "compaction")
    return shape("path", { d: `M${x},${y - 6.5}L${x + 6},${y}L${x},${y + 6.5}L${x - 6},${y}Z` });
  return shape("circle", { cx: x, cy: y, r: 4.5 });
}

function markIcon(kind) {
  return shape(
    "svg",
    { class: `icon mark ${kind}`, viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" },
    markShape(kind, 8, 8),
  );
}
