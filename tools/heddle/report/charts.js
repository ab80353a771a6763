// charts.js: the time bar, the roofline and the memory map.
function drawBar() {
  const bar = document.getElementById("bar");
  document.getElementById("time-title").textContent = measureTitle;
  document.getElementById("time-hint").textContent =
    (data.run ? `One run takes ${secondsText(data.run.seconds)}. ` : "") +
    `Each group's share, in the order of the plan: ${measureName}.`;
  const total = groups.reduce((sum, group) => sum + (weightOf(group) || 0), 0);
  for (const group of groups) {
    const weight = weightOf(group) || 0;
    if (weight <= 0) continue;
    const share = weight / total;
    bar.append(element("button", {
      type: "button", "data-group": group.number, onclick: () => choose(group.number, true),
      style: `flex: ${share} 0 0; ${colorOf(group)}`,
      title: `${group.name}\n${weightText(weight)}, ${percentText(share)}`,
      "aria-label": `${group.name}: ${weightText(weight)}`,
    }, share > 0.04 ? percentText(share) : ""));
  }
  const shares = mechanisms.map((name) => groups.filter((group) => group.mechanism === name)
    .reduce((sum, group) => sum + (weightOf(group) || 0), 0) / (total || 1));
  mechanisms.forEach((name, i) => document.getElementById("legend").append(
    element("li", {}, element("i", { style: `--color: var(--form-${i % 8})` }),
      `${name} ${percentText(shares[i])}`)));
  views.push(marks(bar));
}

const frame = { left: 78, right: 620, top: 14, bottom: 336 };

function axes(svg, xName, yName) {
  svg.append(
    element("line", { class: "axis", x1: frame.left, y1: frame.bottom, x2: frame.right, y2: frame.bottom }),
    element("line", { class: "axis", x1: frame.left, y1: frame.top, x2: frame.left, y2: frame.bottom }),
    element("text", { class: "soft", x: (frame.left + frame.right) / 2, y: 374, "text-anchor": "middle" }, xName),
    element("text", { class: "soft", x: 0, y: 0, "text-anchor": "middle",
      transform: `translate(12,${(frame.top + frame.bottom) / 2}) rotate(-90)` }, yName));
}
function tick(svg, x, y, text) {
  if (x !== undefined) {
    svg.append(
      element("line", { class: "axis", x1: x, y1: frame.top, x2: x, y2: frame.bottom, opacity: 0.5 }),
      element("text", { class: "soft", x, y: frame.bottom + 16, "text-anchor": "middle" }, text));
    return;
  }
  svg.append(
    element("line", { class: "axis", x1: frame.left, y1: y, x2: frame.right, y2: y, opacity: 0.5 }),
    element("text", { class: "soft", x: frame.left - 6, y: y + 4, "text-anchor": "end" }, text));
}

// Points of the roofline: work and traffic of all groups of a launch together.
function rooflinePoints() {
  const points = [];
  for (const group of groups) {
    if (group.launched_with !== undefined) continue;
    const members = membersOf(group);
    if (!members.every(hasSizes)) continue;
    const flops = members.reduce((sum, each) => sum + each.flops, 0);
    const bytes = members.reduce((sum, each) => sum + traffic(each), 0);
    if (flops <= 0 || bytes <= 0) continue;
    const intensity = flops / bytes, limit = data.machine
      ? Math.min(data.machine.flops_per_second, intensity * data.machine.bytes_per_second) : 0;
    points.push({ group, intensity, limit, speed: group.seconds ? flops / group.seconds : limit });
  }
  return points;
}

function drawRoofline() {
  const svg = document.getElementById("roofline"), hint = document.getElementById("roofline-hint");
  const points = rooflinePoints(), machine = data.machine;
  if (!machine || points.length === 0) {
    hint.textContent = machine
      ? "Sizes are symbols: give them with --dim, and each group becomes a point here."
      : "This machine's limits are not known yet: --measure-machine measures them once.";
    svg.remove();
    return;
  }
  hint.textContent = (data.run ? "Points above the line had their tensors in a cache. "
    : "Hollow points are not measured: they lie at their limit. ") +
    `Limits of ${machine.cpu} with ${machine.threads} ` +
    `${machine.threads === 1 ? "thread" : "threads"}: ` +
    `${countText(machine.flops_per_second)}FLOP/s, ${countText(machine.bytes_per_second)}B/s.`;
  const knee = machine.flops_per_second / machine.bytes_per_second;
  const intensities = [...points.map((point) => point.intensity), knee];
  const speeds = [...points.map((point) => point.speed), machine.flops_per_second];
  const low = (values) => Math.floor(Math.log10(Math.min(...values)) - 0.15);
  const high = (values) => Math.ceil(Math.log10(Math.max(...values)) + 0.1);
  const x0 = low(intensities), x1 = high(intensities), y0 = low(speeds), y1 = high(speeds);
  const x = (value) => frame.left + (Math.log10(value) - x0) / (x1 - x0) * (frame.right - frame.left);
  const y = (value) => frame.bottom - (Math.log10(value) - y0) / (y1 - y0) * (frame.bottom - frame.top);
  axes(svg, "floating point operations a byte of traffic", "FLOP/s");
  for (let i = x0; i <= x1; ++i) tick(svg, x(10 ** i), undefined, i < 0 ? String(10 ** i) : countText(10 ** i));
  for (let i = y0; i <= y1; ++i) tick(svg, undefined, y(10 ** i), countText(10 ** i));
  // The slope begins where it enters the frame.
  const begin = Math.max(10 ** x0, 10 ** y0 / machine.bytes_per_second);
  svg.append(element("path", {
    class: "roof", d: `M${x(begin)},${y(begin * machine.bytes_per_second)} L${x(knee)},` +
      `${y(machine.flops_per_second)} L${frame.right},${y(machine.flops_per_second)}`,
  }));
  for (const { group, intensity, limit, speed } of points)
    svg.append(element("circle", {
      class: group.seconds ? "point" : "point hollow", "data-group": group.number,
      style: colorOf(group), cx: x(intensity), cy: y(speed), r: 6,
      onclick: () => choose(group.number, true),
    }, element("title", {}, `${group.name}\n${countText(speed)}FLOP/s, ` +
      `${digits(intensity)} FLOP a byte` +
      (group.seconds ? `\n${percentText(speed / limit)} of the limit` : ""))));
  views.push(marks(svg));
}

// Sizes that are symbols have no scale: each buffer then is as high as any other, on the lowest row
// that is free while it lives.
function rowsOf(buffers) {
  const rows = [];
  for (const [i, one] of buffers.entries()) {
    const taken = new Set(buffers.slice(0, i).flatMap((other, j) =>
      one.first <= other.last && other.first <= one.last ? [rows[j]] : []));
    rows.push(0);
    while (taken.has(rows[i])) ++rows[i];
  }
  return rows;
}

function drawMemory() {
  const svg = document.getElementById("memory"), hint = document.getElementById("memory-hint");
  const { buffers, arena_bytes: arena } = data.memory;
  if (buffers.length === 0) {
    hint.textContent = "No tensor lies in the arena: every group writes an output.";
    svg.remove();
    return;
  }
  const isSized = isNumber(arena) && arena > 0;
  hint.textContent = isSized
    ? `Arena of ${bytesText(arena)}; pale buffers are a kernel's own temporary memory.`
    : "Drawn equally high, since their sizes are symbols (--dim gives them).";
  const lows = isSized ? buffers.map((buffer) => buffer.offset) : rowsOf(buffers);
  const end = isSized ? arena : 1 + Math.max(...lows);
  const x = (step) => frame.left + step / groups.length * (frame.right - frame.left);
  const y = (place) => frame.bottom - place / end * (frame.bottom - frame.top);
  axes(svg, "groups in the order of the plan", isSized ? "offset in the arena" : "buffers");
  const stepX = Math.max(1, Math.ceil(groups.length / 8));
  for (let i = 0; i < groups.length; i += stepX) tick(svg, x(i), undefined, String(i));
  for (let i = 0; i <= 4; ++i)
    tick(svg, undefined, y(end * i / 4), isSized ? bytesText(end * i / 4) : "");
  for (const [i, buffer] of buffers.entries()) {
    const group = groups[buffer.group];
    const low = lows[i], high = low + (isSized ? buffer.bytes : 1);
    svg.append(element("rect", {
      class: buffer.is_temporary ? "buffer temporary" : "buffer", "data-group": buffer.group,
      style: colorOf(group), x: x(buffer.first), y: y(high), width: x(buffer.last + 1) - x(buffer.first),
      height: Math.max(0.8, y(low) - y(high)), onclick: () => choose(buffer.group, true),
    }, element("title", {}, `${group.name}\n${buffer.is_temporary ? "temporary" : "result"} ` +
      `${buffer.index}, ${bytesText(buffer.bytes)}\ngroups ${buffer.first} to ${buffer.last}`)));
  }
  views.push(marks(svg));
}
