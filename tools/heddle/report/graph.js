// graph.js: groups as boxes with their ops inside, in layers that wrap into columns.
const graph = document.getElementById("graph");
const boxWidth = 236, opHeight = 17, mostOps = 4, gapX = 34, gapY = 26;

const sourcesOf = (group) =>
  [...new Set(group.inputs.map((input) => input.group).filter((source) => source !== undefined &&
    source !== group.number))];

function layersOf() {
  const layer = [];
  for (const group of groups)
    layer[group.number] = Math.max(-1, ...sourcesOf(group).map((source) => layer[source] ?? -1)) + 1;
  const layers = [];
  for (const group of groups) (layers[layer[group.number]] ||= []).push(group);
  return layers.filter((members) => members);
}

const heightOf = (group) => 44 + opHeight * Math.min(group.ops.length, mostOps + 1);

// Columns of layers, as many as make the whole about as wide as the panel.
function place() {
  const layers = layersOf();
  const widths = layers.map((members) => members.length * (boxWidth + gapX));
  const heights = layers.map((members) => Math.max(...members.map(heightOf)) + gapY);
  const total = heights.reduce((sum, height) => sum + height, 0);
  const shape = (graph.clientWidth || 800) / (graph.clientHeight || 620);
  const fill = (most) => {
    const columns = [];
    let height = Infinity;
    layers.forEach((members, i) => {
      if (height + heights[i] > most) {
        columns.push({ layers: [], width: 0 });
        height = 0;
      }
      const column = columns[columns.length - 1];
      column.layers.push(i);
      column.width = Math.max(column.width, widths[i]);
      height += heights[i];
    });
    return columns;
  };
  // The least height at which so many columns are enough.
  const columnsFor = (count) => {
    let most = Math.max(total / count, ...heights), columns = fill(most);
    while (columns.length > count) columns = fill(most *= 1.02);
    return columns;
  };
  let columns = columnsFor(1);
  for (let count = 2; count <= layers.length; ++count) {
    const width = columns.reduce((sum, column) => sum + column.width + gapX, 0);
    if (width / (total / (count - 1)) >= shape) break;
    columns = columnsFor(count);
  }
  const places = [];
  let x = 0;
  columns.forEach((column, number) => {
    let y = 0;
    for (const i of column.layers) {
      // Under their sources, so that edges cross little.
      const wish = (group) => {
        const above = sourcesOf(group).map((source) => places[source]?.x ?? 0);
        return above.reduce((sum, value) => sum + value, 0) / (above.length || 1);
      };
      const members = [...layers[i]].sort((a, b) => wish(a) - wish(b) || a.number - b.number);
      let left = x + (column.width - widths[i]) / 2;
      for (const group of members) {
        places[group.number] = { x: left, y, height: heightOf(group), column: number };
        left += boxWidth + gapX;
      }
      y += heights[i];
    }
    x += column.width + gapX;
  });
  return places;
}

function nodeOf(group, at) {
  const node = element("g", {
    class: "node", transform: `translate(${at.x},${at.y})`, "data-group": group.number,
    style: colorOf(group),
  });
  node.append(
    element("title", {}, `${group.name}\n${group.ops.length} ops, ${group.mechanism}`),
    element("rect", { class: "box", width: boxWidth, height: at.height, rx: 8 }),
    element("rect", { class: "band", x: 0, y: 8, width: 5, height: at.height - 16, rx: 2 }),
    element("text", { class: "title", x: 14, y: 18 }, shortName(group, 28)),
    element("text", { class: "soft", x: 14, y: 33 },
      `${group.number} \u00b7 ${group.card || group.mechanism}` +
      (weightOf(group) ? ` \u00b7 ${weightText(weightOf(group))}` : "")));
  const shown = group.ops.length > mostOps + 1 ? mostOps : group.ops.length;
  group.ops.slice(0, shown).forEach((op, i) => {
    const y = 39 + i * opHeight;
    node.append(
      element("rect", { class: "op", x: 12, y, width: boxWidth - 24, height: opHeight - 3, rx: 4 }),
      element("text", { class: "op-text", x: 18, y: y + 10.5 },
        `${lastPart(op.name)}`.slice(0, 34)));
  });
  node.append(element("text", { class: "far-text", x: 16, y: at.height / 2 + 12 },
    `${group.number} ${lastPart(group.name)}`.slice(0, 11)));
  if (shown < group.ops.length)
    node.append(element("text", { class: "op-text", x: 18, y: 39 + shown * opHeight + 11 },
      `and ${group.ops.length - shown} more ops`));
  return node;
}

function edgePath(from, to) {
  if (from.column === to.column) {
    const x1 = from.x + boxWidth / 2, y1 = from.y + from.height, x2 = to.x + boxWidth / 2, y2 = to.y;
    const bend = Math.max(14, Math.min(60, (y2 - y1) / 2));
    const aside = y2 - y1 > 90 ? boxWidth * 0.62 : 0; // around what is between
    return `M${x1},${y1} C${x1 + aside},${y1 + bend} ${x2 + aside},${y2 - bend} ${x2},${y2}`;
  }
  const isForth = from.column < to.column;
  const x1 = from.x + (isForth ? boxWidth : 0), y1 = from.y + from.height / 2;
  const x2 = to.x + (isForth ? 0 : boxWidth), y2 = to.y + to.height / 2, bend = isForth ? 60 : -60;
  return `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}

const places = place();
const canvas = element("g");
const edges = [];
for (const group of groups)
  for (const source of sourcesOf(group)) {
    const isFar = Math.abs(places[source].column - places[group.number].column) > 1;
    const path = element("path", { class: isFar ? "edge far" : "edge", d: edgePath(places[source], places[group.number]) });
    edges.push({ path, from: source, to: group.number });
    canvas.append(path);
  }
for (const group of groups) canvas.append(nodeOf(group, places[group.number]));
graph.append(canvas);

const view = { x: 0, y: 0, scale: 1 };
function show() {
  canvas.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`);
  graph.classList.toggle("overview", view.scale < 0.5); // too small to read: only what and which
}
function fit() {
  const right = Math.max(...places.map((at) => at.x + boxWidth));
  const bottom = Math.max(...places.map((at) => at.y + at.height));
  view.scale = Math.min(1.2, (graph.clientWidth - 32) / right, (graph.clientHeight - 32) / bottom);
  view.x = (graph.clientWidth - right * view.scale) / 2;
  view.y = (graph.clientHeight - bottom * view.scale) / 2;
  show();
}
function centre(number) {
  const at = places[number];
  view.scale = Math.max(view.scale, 0.8);
  view.x = graph.clientWidth / 2 - (at.x + boxWidth / 2) * view.scale;
  view.y = graph.clientHeight / 2 - (at.y + at.height / 2) * view.scale;
  show();
}

graph.addEventListener("wheel", (event) => {
  event.preventDefault();
  const bounds = graph.getBoundingClientRect();
  const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
  const scale = Math.min(4, Math.max(0.03, view.scale * Math.exp(-event.deltaY * 0.0015)));
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  show();
}, { passive: false });

let drag = null; // where the pointer went down, and whether it has moved since
graph.addEventListener("pointerdown", (event) => {
  drag = { x: event.clientX - view.x, y: event.clientY - view.y, startX: event.clientX,
    startY: event.clientY, target: event.target.closest(".node") };
  graph.setPointerCapture(event.pointerId);
  graph.classList.add("moving");
});
graph.addEventListener("pointermove", (event) => {
  if (!drag) return;
  view.x = event.clientX - drag.x;
  view.y = event.clientY - drag.y;
  show();
});
graph.addEventListener("pointerup", (event) => {
  const isClick = drag && Math.hypot(event.clientX - drag.startX, event.clientY - drag.startY) < 4;
  if (isClick && drag.target) choose(Number(drag.target.dataset.group));
  drag = null;
  graph.classList.remove("moving");
});
document.getElementById("fit").addEventListener("click", fit);

// Search: what does not match fades; Enter goes from match to match.
const search = document.getElementById("search"), found = document.getElementById("found");
const textOf = (group) =>
  [group.name, group.card, group.mechanism, group.key, ...group.ops.map((op) => op.name)]
    .join(" ").toLowerCase();
const searchable = groups.map(textOf);
let matches = [], turn = -1;
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  matches = groups.filter((group) => wanted && searchable[group.number].includes(wanted));
  turn = -1;
  found.textContent = wanted ? `${matches.length} of ${groups.length}` : "";
  for (const node of canvas.querySelectorAll(".node"))
    node.classList.toggle("faint",
      wanted !== "" && !searchable[Number(node.dataset.group)].includes(wanted));
});
search.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || matches.length === 0) return;
  turn = (turn + 1) % matches.length;
  choose(matches[turn].number, true);
});

const markNodes = marks(canvas);
views.push((group, isCentred) => {
  markNodes(group);
  for (const edge of edges)
    edge.path.classList.toggle("near", edge.from === group.number || edge.to === group.number);
  if (isCentred) centre(group.number);
});
