// details.js: the head of the page, all about the chosen group, and the table of all groups.
function drawHead() {
  const name = data.model.split("/").pop();
  document.title = `${name} \u2014 heddle explain`;
  document.getElementById("model").textContent = name;
  const facts = [
    ["target", data.target], ["groups", groups.length], ["launches", data.launches],
    ["weights", bytesText(data.weights_bytes)], [
      "arena", isNumber(data.memory.arena_bytes) ? bytesText(data.memory.arena_bytes)
        : `${data.memory.buffers.length} buffers`],
  ];
  if (data.symbols.length) facts.push(["symbols", data.symbols.join(", ")]);
  if (data.run) facts.push([`time, ${data.run.threads} threads`, secondsText(data.run.seconds)]);
  document.getElementById("facts").append(...facts.map(([title, value]) =>
    element("div", {}, element("dt", {}, title), element("dd", {}, String(value)))));
}

function rows(header, lines, numbers = []) {
  const cell = (kind) => (content, i) =>
    element(kind, { class: numbers.includes(i) ? "number" : undefined }, content);
  return element("table", {},
    element("thead", {}, element("tr", {}, ...header.map(cell("th")))),
    element("tbody", {}, ...lines.map((line) => element("tr", {}, ...line.map(cell("td"))))));
}

const link = (number) =>
  element("a", { href: "#group-" + number, onclick: (event) => {
    event.preventDefault();
    choose(number, true);
  } }, shortName(groups[number], 44));

function sourceOf(input) {
  if (input.group !== undefined) return link(input.group);
  return input.input !== undefined ? "input " + input.input : input.weight ? "weight" : input.op;
}

// What was chosen, what was offered, what was refused for how the group is, and last the cards for
// other kinds of groups.
function rankOf(offer, group) {
  if (offer.card === group.card) return 0;
  if (offer.refusal === null) return 1;
  return /^(the group is built around|loops ')/.test(data.refusals[offer.refusal]) ? 3 : 2;
}

function offersOf(group) {
  const offers = [...group.offers].sort((a, b) => rankOf(a, group) - rankOf(b, group));
  const table = rows(["card", "priority", "answer"], offers.map((offer) => {
    const isRefused = offer.refusal !== null;
    const isChosen = offer.card === group.card;
    return [offer.card, String(offer.priority), element("span",
      { class: isChosen ? "yes" : isRefused ? "no" : undefined },
      isChosen ? "chosen" : isRefused ? "refused: " + data.refusals[offer.refusal] : "offered")];
  }), [1]);
  table.classList.add("tight");
  return table;
}

function figuresOf(group) {
  const facts = [
    ["read", bytesText(group.read_bytes)], ["of it weights", bytesText(group.weight_bytes)],
    ["written", bytesText(group.written_bytes)], ["FLOPs", countText(group.flops)],
  ];
  if (group.seconds) facts.push(["time", secondsText(group.seconds)]);
  if (group.flops_per_second !== undefined)
    facts.push(["speed", countText(group.flops_per_second) + "FLOP/s"],
      ["traffic", countText(group.bytes_per_second) + "B/s"],
      ["of the limit", percentText(group.of_bound)]);
  else if (group.bound_seconds) facts.push(["limit", secondsText(group.bound_seconds)]);
  const list = element("dl", {}, ...facts.map(([title, value]) =>
    element("div", {}, element("dt", {}, title), element("dd", {}, value))));
  const together = membersOf(group).length;
  if (group.seconds && together > 1)
    return [list, element("p", { class: "hint" },
      `Time, speed and traffic are those of the ${together} groups that are launched at once.`)];
  if (group.launched_with === undefined) return [list];
  return [list, element("p", { class: "hint" }, "Its time is in that of ", link(group.launched_with),
    ", with which it is launched at once.")];
}

function assemblyOf(group) {
  const { texts, functions, cut } = data.assembly;
  return group.functions.map((name, i) => {
    const sharers = groups.filter((other) => other.functions.some((each) =>
      each === name || (functions[each] !== undefined && functions[each] === functions[name])));
    const isCut = cut.includes(name), text = texts[functions[name]];
    const title = `Assembly of ${name}` + (sharers.length > 1 ? `, shared by ${sharers.length} groups` : "");
    const body = text !== undefined ? element("pre", {}, text) : element("p", { class: "hint" },
      isCut ? "Left out: with it this page would be larger than 1 MB. " +
        "'heddle compile MODEL -o model.s' writes it."
        : "It has no function of its own: its code is inside that of the program.");
    return element("details", {}, element("summary", {}, title), body);
  });
}

function buffersOf(group) {
  const own = data.memory.buffers.filter((buffer) => buffer.group === group.number);
  if (own.length === 0) return [element("p", { class: "hint" }, "Nothing in the arena.")];
  return [rows(["buffer", "offset", "bytes", "groups"], own.map((buffer) =>
    [`${buffer.is_temporary ? "temporary" : "result"} ${buffer.index}`,
      isNumber(buffer.offset) ? String(buffer.offset) : "", bytesText(buffer.bytes),
      `${buffer.first}\u2013${buffer.last}`]), [1, 2])];
}

const assigned = (numbers, word) =>
  Object.entries(numbers).map(([name, value]) => name + word + value).join(" ");

const panel = document.getElementById("details");
views.push((group) => {
  const card = data.cards[group.card];
  const tags = [element("span", { class: "tag form", style: colorOf(group) }, group.mechanism)];
  tags.push(element("span", { class: "tag" }, group.card ? "card " + group.card : "no card"));
  for (const [name, value] of Object.entries(group.knobs))
    tags.push(element("span", { class: "tag" }, `${name} = ${value}`));
  for (const { when, knobs } of group.versions || [])
    tags.push(element("span", { class: "tag" },
      `${assigned(when, " \u2264 ")}: ${assigned(knobs, "=")}`));
  if (group.region !== null)
    tags.push(element("span", { class: "tag" }, "launched at once: region " + group.region));
  if (group.is_fallback)
    tags.push(element("span", { class: "tag no" }, "its schedule could not be carried out"));
  panel.replaceChildren(
    element("p", { class: "hint" }, `Group ${group.number}`),
    element("h2", {}, group.name), element("p", {}, ...tags), ...figuresOf(group),
    element("h3", {}, "Key"), element("code", { class: "key" }, group.key),
    element("h3", {}, "Offers"), offersOf(group),
    element("h3", {}, `Ops (${group.ops.length})`),
    rows(["ONNX node", "what it is", "graph ops", "result"], group.ops.map((op) =>
      [op.name, op.onnx || "", op.graph_ops.join(", "), op.result || ""])),
    element("h3", {}, "Tensors"),
    rows(["type", "from", "bytes"], [
      ...group.inputs.map((input) => [input.type, sourceOf(input), bytesText(input.bytes)]),
      ...group.outputs.map((output) => [output.type, "written", bytesText(output.bytes)])], [2]),
    element("h3", {}, "Memory"), ...buffersOf(group),
    element("h3", {}, "Schedule and code"),
    card ? element("details", {}, element("summary", {}, `Card ${group.card} (${card.path})`),
      element("pre", {}, card.text))
      : element("p", { class: "hint" }, "No card: its mechanism with numbers of its own."),
    ...assemblyOf(group));
  panel.scrollTop = 0;
});

function drawTable() {
  const table = document.getElementById("groups");
  const columns = [
    ["#", (group) => String(group.number), true], ["group", (group) => group.name],
    ["ops", (group) => String(group.ops.length), true], ["mechanism", (group) => group.mechanism],
    ["card", (group) => group.card || "\u2013"], ["knobs", knobsText],
    ["read", (group) => bytesText(group.read_bytes), true],
    ["written", (group) => bytesText(group.written_bytes), true],
    ["FLOPs", (group) => countText(group.flops), true],
  ];
  if (data.run)
    columns.push(["time", (group) => group.seconds ? secondsText(group.seconds)
      : group.launched_with !== undefined ? "in " + group.launched_with : "\u2013", true],
    ["of limit", (group) => group.of_bound ? percentText(group.of_bound) : "\u2013", true]);
  table.append(
    element("thead", {}, element("tr", {}, ...columns.map(([title, , isRight]) =>
      element("th", { class: isRight ? "number" : undefined }, title)))),
    element("tbody", {}, ...groups.map((group) =>
      element("tr", { "data-group": group.number, onclick: () => choose(group.number, true) },
        ...columns.map(([, text, isRight]) =>
          element("td", { class: isRight ? "number" : undefined }, text(group)))))));
  views.push(marks(table));
}

function drawDifferences() {
  if (!data.differences) return;
  document.getElementById("differences").hidden = false;
  document.querySelector("#differences pre").textContent = data.differences;
}

drawHead();
drawDifferences();
if (groups.length) {
  drawBar();
  drawRoofline();
  drawMemory();
  drawTable();
  fit();
  const heaviest = groups.reduce((best, group) =>
    (weightOf(group) || 0) > (weightOf(best) || 0) ? group : best, groups[0]);
  const wanted = /^#group-(\d+)$/.exec(location.hash);
  choose(wanted ? Number(wanted[1]) : heaviest.number, Boolean(wanted));
}
document.documentElement.dataset.ready = "yes";
