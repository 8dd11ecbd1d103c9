// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: words/units.py, of which a test in a browser holds these equal.
const count = value => value.toLocaleString("en-US", {maximumFractionDigits: 0});
const significant = (value, digits = 3) => {
  if (!value) return "0";
  const rounded = Number(value.toPrecision(digits));
  const places = digits - 1 - Math.floor(Math.log10(Math.abs(rounded) || 1) + 1e-12);
  const decimals = Math.max(places, 0);
  return rounded.toLocaleString("en-US", {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
};
const seconds = (value, digits = 3) => {
  const scales = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const [scale, unit] = scales.find(([least]) => value >= least * (1 - 0.5 * 10 ** -digits)) ?? scales[3];
  return `${significant(value / scale, digits)} ${unit}`;
};
/// Both times, the unit once where they share it.
const timeEnds = (low, high, digits = 3) => {
  const [first, second] = [low, high].map(value => seconds(value, digits)), [number, unit] = first.split(" ");
  return [second.endsWith(` ${unit}`) ? number : first, second];
};
const rate = (value, unit) => {
  const prefixes = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [scale, prefix] = prefixes.find(([least]) => value >= least * 0.9995) ?? [1, ""];
  return `${significant(value / scale)} ${prefix}${unit}`;
};
const binaryBytes = value => {
  const [scale, unit] = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]].find(([least]) => value >= least) ?? [1, "B"];
  return `${value % scale ? significant(value / scale) : count(value / scale)} ${unit}`;
};
