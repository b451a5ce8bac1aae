/* From values to pixels, and round numbers for axes. */

function scale(low, high, from, to) {
  const width = high - low || 1;
  const at = (value) => from + ((value - low) / width) * (to - from);
  at.invert = (pixel) => low + ((pixel - from) / (to - from)) * width;
  return at;
}

/* About `wanted` round steps of 1, 2 or 5 times a power of ten. */
function roundStep(width, wanted) {
  const rough = (width || 1) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
}

function ticks(low, high, step) {
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(value);
  return found;
}

const TIME_STEPS = [
  1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000,
];

/* Ticks at round times of the reader's clock; values are seconds. */
function timeTicks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const step = TIME_STEPS.find((candidate) => candidate >= rough) ?? Math.ceil(rough / 2592000) * 2592000;
  const shift = new Date(low * 1000).getTimezoneOffset() * 60;
  const values = ticks(low - shift, high - shift, step).map((value) => value + shift);
  return { values, step };
}

/* The last place whose value is at most this one; 0 if none is. */
function lastAtMost(values, value) {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (values[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* 50K and not 50.0K: an axis has only round numbers. */
function shortTokens(value) {
  return tokens(value).replace(/\.0(?=[KMB])/, "");
}
