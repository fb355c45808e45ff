const { names, runs } = JSON.parse(document.getElementById("data").textContent);
const table = document.querySelector("table"), body = table.tBodies[0];
const rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
const search = document.querySelector("input[type=search]"), buttons = [...document.querySelectorAll(".tools button")];
const plot = document.getElementById("plot"), legend = document.getElementById("legend");
const COLORS = ["#d2622a", "#a855b5", "#2f7ebc", "#c2a01c", "#c0455e", "#7a7a35"];
const others = [...new Set(runs.filter(run => run.tone !== "good").map(run => run.verdict))];
const color = run => run.tone === "good" ? "#2e8b57" : COLORS[others.indexOf(run.verdict) % COLORS.length];
const box = row => row.querySelector("input");
const SAME = 1e-9, AROUND = .01;  // of numbers: no further apart they are the same; so far an axis then goes
const short = (x, digits) => x !== 0 && (Math.abs(x) >= 1e6 || Math.abs(x) < 1e-3) ? x.toExponential(digits - 2) : String(+x.toPrecision(digits));

function draw(name, attributes, parent, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
}

function compare() {  // axes below each other, a line for each run
  const shown = rows.filter(row => !row.hidden), checked = shown.filter(row => box(row).checked);
  const chosen = (checked.length ? checked : shown).map(row => +box(row).value).sort((a, b) => a - b);
  const count = name => chosen.filter(k => name in runs[k].numbers).length;
  const axes = names.filter(name => count(name) >= Math.min(2, chosen.length) && count(name));
  const width = plot.clientWidth, L = 14, R = width - 14, STEP = 80;
  const lane = k => Math.min(8, 24 / (chosen.length - 1)) * (chosen.indexOf(k) - .5 * (chosen.length - 1)) || 0;
  const height = STEP * axes.length;
  plot.replaceChildren();
  const svg = draw("svg", { width: "100%", height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${chosen.length} runs over ${axes.join(", ")}` }, plot);
  const places = axes.map((name, row) => {
    const all = chosen.filter(k => name in runs[k].numbers).map(k => runs[k].numbers[name]);
    const every = all.flatMap(x => x.slice(0, -1));
    let low = Math.min(...every), high = Math.max(...every);
    if (high - low <= SAME * Math.max(-low, high)) [low, high] = [low - AROUND * Math.abs(low), high + AROUND * Math.abs(high)];
    const isLog = low > 0 && high > 30 * low, f = x => isLog ? Math.log(x) : x, y = STEP * row + 44;
    const digits = Math.max(3, Math.ceil(Math.log10(Math.max(-low, high) / (high - low)) || 0) + 2);
    const unit = all[0].at(-1);
    draw("line", { x1: L, x2: R, y1: y, y2: y, stroke: "var(--line)", "stroke-width": 2 }, svg);
    const text = (x, anchor, what, dy) => draw("text", { x, y: y + dy, "text-anchor": anchor, fill: "var(--soft)", "font-size": 12 }, svg, what);
    text(L, "start", name + (unit && ` [${unit}]`), -30).setAttribute("fill", "var(--ink)");
    text(L, "start", short(low, digits), 28);
    if (high > low) text(R, "end", short(high, digits) + (isLog ? ", logarithmic" : ""), 28);
    return [x => high > low ? L + (R - L) * (f(x) - f(low)) / (f(high) - f(low)) : (L + R) / 2, y];
  });
  for (const k of chosen) {
    const run = runs[k], c = color(run);
    const group = draw("g", { class: "run", stroke: c, fill: c }, svg);
    draw("title", {}, group, `${k + 1} ${run.name}: ${run.verdict}`);
    let path = "", before = false;
    axes.forEach((name, j) => {
      const numbers = run.numbers[name], [X, y] = places[j];
      if (numbers) {
        const own = y + lane(k);  // runs lie below each other, so that intervals do not hide each other
        path += `${before ? "L" : "M"}${X(numbers[0]).toFixed(1)} ${own}`;
        if (numbers.length > 2) draw("line", { x1: X(numbers[1]), x2: X(numbers[2]), y1: own, y2: own, "stroke-width": 4, opacity: .45 }, group);
        draw("circle", { cx: X(numbers[0]), cy: own, r: 4.5, stroke: "var(--paper)" }, group);
      }
      before = Boolean(numbers);
    });
    draw("path", { d: path, fill: "none", "stroke-width": 1.6 }, group);
  }
  axes.forEach((name, j) => {  // numbers of runs above their dots, those of close ones together
    const [X, y] = places[j], labels = [];
    const dots = chosen.filter(k => name in runs[k].numbers).map(k => [X(runs[k].numbers[name][0]), k]).sort((a, b) => a[0] - b[0]);
    for (const [x, k] of dots) {
      const last = labels.at(-1);
      if (last && x - last.x < 8 + 7 * last.text.length) last.text += ` ${k + 1}`;
      else labels.push({ x, text: String(k + 1) });
    }
    if (chosen.length <= 12) for (const { x, text } of labels)
      draw("text", { x, y: y - 7 + lane(chosen[0]), "text-anchor": x > R - 4 * text.length ? "end" : x < L + 4 * text.length ? "start" : "middle", fill: "var(--ink)", "font-size": 11 }, svg, text);
  });
  plot.parentElement.hidden = !axes.length || runs.length < 2;
  legend.replaceChildren(...[...new Map(chosen.map(k => [runs[k].verdict, color(runs[k])]))].map(([text, tint]) => {
    const item = document.createElement("span"), dot = document.createElement("span");
    item.style.cssText = "display:inline-block;margin-right:1.2rem";
    dot.style.cssText = `display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.4em;background:${tint}`;
    item.append(dot, text);
    return item;
  }));
}

function filter() {
  const chosen = buttons.filter(b => b.ariaPressed === "true").map(b => b.dataset.verdict);
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !(words.every(w => text.includes(w)) &&
      (!chosen.length || chosen.includes(row.dataset.verdict)));
  }
  compare();
}
search.addEventListener("input", filter);
body.addEventListener("change", compare);
addEventListener("resize", compare);
for (const one of buttons) one.addEventListener("click", () => {
  one.ariaPressed = one.ariaPressed === "true" ? "false" : "true";
  filter();
});
heads.forEach((head, k) => {
  if (!k) return;
  const sort = () => {
    const sign = head.ariaSort === "ascending" ? -1 : 1;
    heads.forEach(h => h.removeAttribute("aria-sort"));
    head.ariaSort = sign > 0 ? "ascending" : "descending";
    const number = row => runs[box(row).value].numbers[head.dataset.name]?.[0];
    const value = row => row.cells[k].textContent.trim();
    const order = new Intl.Collator(undefined, {numeric: true});
    rows.sort((a, b) => {
      const [x, y] = [number(a), number(b)];
      if (x !== undefined && y !== undefined) return sign * (x - y);
      if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1;  // nothing comes last
      return sign * order.compare(value(a), value(b));
    });
    body.append(...rows);
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", e => e.key === "Enter" && sort());
});
compare();
