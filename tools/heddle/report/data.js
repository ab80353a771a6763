// data.js: the explanation, what is computed from it once, and how its numbers are written.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const groups = data.groups;
const svgSpace = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const isSvg = ["svg", "g", "rect", "path", "text", "title", "circle", "line"].includes(name);
  const made = isSvg ? document.createElementNS(svgSpace, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

const isNumber = (value) => typeof value === "number";
const digits = (value, count = 3) =>
  value >= 10 ** count ? Math.round(value).toString() : Number(value.toPrecision(count)).toString();

function scaled(value, step, units) {
  let unit = 0;
  for (; Math.abs(value) >= step && unit + 1 < units.length; ++unit) value /= step;
  return digits(value) + " " + units[unit];
}

// Sizes that depend on symbols are expressions.
const bytesText = (value) =>
  isNumber(value) ? scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"])
    : value === null || value === undefined ? "?" : value + " B";
const countText = (value) =>
  isNumber(value) ? scaled(value, 1000, ["", "K", "M", "G", "T"]).trim() : String(value);
const secondsText = (value) =>
  value >= 1 ? digits(value) + " s" : value >= 1e-3 ? digits(value * 1e3) + " ms"
    : digits(value * 1e6) + " \u00b5s";
const percentText = (value) => digits(100 * value) + " %";

// One colour a mechanism, in the order in which the model first uses them.
const mechanisms = [...new Set(groups.map((group) => group.mechanism))];
const colorOf = (group) => `--color: var(--form-${mechanisms.indexOf(group.mechanism) % 8})`;

const knobsText = (group) =>
  Object.entries(group.knobs).map(([name, value]) => `${name}=${value}`).join(" ");
const lastPart = (name) => name.split("/").filter((part) => part).pop() || name;

// Names of groups without the beginning that all have.
const sharedStart = (() => {
  let start = groups.length > 1 ? groups[0].name : "";
  for (const group of groups)
    while (start && !group.name.startsWith(start)) start = start.slice(0, -1);
  return start.slice(0, start.lastIndexOf("/") + 1).length;
})();
function shortName(group, letters = 30) {
  const name = group.name.slice(sharedStart) || group.name;
  return name.length > letters ? "\u2026" + name.slice(name.length - letters + 1) : name;
}

// What the time bar shows: the best that is known.
const measures = [
  ["measured time, median of the runs", (group) => group.seconds, secondsText, "Time"],
  ["least time that this machine needs (not measured; --measure times each group)",
    (group) => group.bound_seconds, secondsText, "Least time"],
  ["floating point operations (neither measured nor is the machine known)",
    (group) => isNumber(group.flops) ? group.flops : undefined, countText, "Work"],
  ["number of ops (sizes are symbols; --dim gives them)", (group) => group.ops.length, String, "Ops"],
];
const [measureName, weightOf, weightText, measureTitle] =
  measures.find(([, weight]) => groups.some((group) => weight(group) > 0)) || measures[3];

// Groups that are launched at once with another one count there.
const membersOf = (group) =>
  groups.filter((other) => other === group || other.launched_with === group.number);
const traffic = (group) => group.read_bytes + group.written_bytes;
const hasSizes = (group) =>
  isNumber(group.flops) && isNumber(group.read_bytes) && isNumber(group.written_bytes);

// Selection: one group, shown by every view.
let chosen = 0;
const views = [];
function choose(number, isCentred = false) {
  if (!groups[number]) return;
  chosen = number;
  history.replaceState(null, "", "#group-" + number);
  for (const view of views) view(groups[number], isCentred);
}
// Marks the elements of a view whose data-group is the chosen one.
const marks = (root) => (group) => {
  for (const each of root.querySelectorAll("[data-group]"))
    each.classList.toggle("chosen", Number(each.dataset.group) === group.number);
};
