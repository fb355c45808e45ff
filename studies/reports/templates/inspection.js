const data = JSON.parse(document.getElementById("data").textContent);
const slider = document.getElementById("slider"), when = document.getElementById("when");
const redraws = [];
slider.max = data.times.length - 1;

function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(k => k * power >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

function chart(one) {
  const section = document.createElement("section");
  const h2 = document.createElement("h2"), text = document.createElement("p");
  h2.textContent = one.title; text.textContent = one.text + (one.log ? " The axis is logarithmic." : ""); text.className = "caption";
  const canvas = document.createElement("canvas");
  canvas.style.cssText = "width:100%;height:15rem;display:block";
  const legend = document.createElement("p");
  legend.className = "caption";
  section.append(h2, text, canvas, legend);
  document.getElementById("charts").append(section);
  const names = Object.keys(one.lines), value = y => one.log ? Math.log10(y) : y;
  let all = names.flatMap(n => one.lines[n]).filter(y => y !== null && (!one.log || y > 0)).map(value);
  let low = Math.min(...all), high = Math.max(...all);
  if (one.log && high - low > 18) low = high - 18;
  if (!one.log) { low = Math.min(low, 0); high = Math.max(high, 0); }
  if (!all.length) { low = 0; high = 1; }
  if (high - low < 1e-12) { low -= .5; high += .5; }
  redraws.push(index => {
    const [c, width, height] = sharp(canvas), L = 58, R = 12, T = 16, B = 46;
    const X = t => L + (width - L - R) * t / data.end, Y = v => T + (height - T - B) * (high - v) / (high - low);
    c.strokeStyle = style("--line"); c.fillStyle = style("--soft"); c.lineWidth = 1;
    const marks = one.log ? ticks(low, high, 5).filter(v => Number.isInteger(v)) : ticks(low, high, 5);
    const between = [[1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]].map(digits => digits.flatMap(k =>
      ticks(Math.floor(low), Math.ceil(high), 5).filter(v => Number.isInteger(v)).map(v => v + Math.log10(k)).filter(v => v >= low && v <= high)));
    const level = one.log ? [marks, ...between].find(some => some.length > 1) ?? [low, high] : marks;
    c.textAlign = "right"; c.textBaseline = "middle";
    for (const v of level) {
      c.beginPath(); c.moveTo(L, Y(v)); c.lineTo(width - R, Y(v)); c.stroke();
      c.fillText(one.log ? short(+(10 ** v).toPrecision(2)) : short(+v.toPrecision(6)), L - 6, Y(v));
    }
    c.textAlign = "center"; c.textBaseline = "top";
    for (const t of ticks(0, data.end, 6)) c.fillText(short(+t.toPrecision(6)) + " s", Math.min(X(t), width - 18), height - B + 28);
    const line = (t, color, dash) => {
      c.strokeStyle = color; c.setLineDash(dash); c.beginPath(); c.moveTo(X(t), T); c.lineTo(X(t), height - B); c.stroke(); c.setLineDash([]);
    };
    c.fillStyle = style("--soft");
    for (const t of data.frames) c.fillRect(X(t) - .5, height - B, 1, 5);
    Object.values(data.marks.events).forEach((times, k) => {
      c.fillStyle = COLORS[(k + 3) % COLORS.length];
      for (const t of times) { c.beginPath(); c.arc(X(t), height - B + 9 + 4.5 * (k % 4), 2, 0, 7); c.fill(); }
    });
    c.fillStyle = style("--soft");
    if (data.marks.horizon !== null) { line(data.marks.horizon, "#c0455e", [5, 4]); c.textAlign = "left"; c.fillText("horizon", X(data.marks.horizon) + 3, 2); }
    line(data.times[index], style("--ink"), []);
    c.lineWidth = 1.7;
    names.forEach((name, k) => {
      c.strokeStyle = COLORS[k % COLORS.length]; c.beginPath();
      let pen = false;
      one.lines[name].forEach((y, i) => {
        const ok = y !== null && (!one.log || y > 0);
        if (ok) c[pen ? "lineTo" : "moveTo"](X(data.times[i]), Y(Math.max(value(y), low)));
        pen = ok;
      });
      c.stroke();
    });
    legend.replaceChildren(...names.map((name, k) => {
      const item = document.createElement("span");
      item.style.cssText = "white-space:nowrap;margin-right:1.2rem;display:inline-block";
      const dot = document.createElement("span");
      dot.style.cssText = `display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.4em;background:${COLORS[k % COLORS.length]}`;
      const y = one.lines[name][index];
      item.append(dot, `${name}: ${y === null ? "-" : short(+y.toPrecision(3))}`);
      return item;
    }));
  });
}
data.curves.forEach(chart);
const events = Object.keys(data.marks.events);
const note = document.createElement("p");
note.className = "caption full";
note.append("Ticks below the charts are frames" + (events.length ? "; dots are events: " : "."));
events.forEach((name, k) => {
  const dot = document.createElement("span");
  dot.style.cssText = `display:inline-block;width:.6em;height:.6em;border-radius:50%;margin:0 .35em 0 .8em;background:${COLORS[(k + 3) % COLORS.length]}`;
  const item = document.createElement("span");
  item.style.whiteSpace = "nowrap";
  item.append(dot, name);
  note.append(item, " ");
});
document.getElementById("charts").append(note);

const canvas = document.getElementById("view");
if (canvas) redraws.push(space(canvas, data.view, redraw));

const frame = document.getElementById("frame");
if (frame) {  // the frame of the first film that is nearest in time
  const pictures = [...document.querySelector(".film").querySelectorAll("img")];
  const distance = (k, index) => Math.abs(data.films[0][k] - data.times[index]);
  redraws.push(index => {
    const k = pictures.reduce((best, _, k) => distance(k, index) < distance(best, index) ? k : best, 0);
    frame.src = pictures[k].src;
    frame.nextElementSibling.textContent = `Film at ${short(data.films[0][k])} s; red pixels raise the loss when they become brighter, blue ones when they become darker.`;
  });
}

function redraw() {
  const index = +slider.value;
  when.textContent = `state ${data.steps[index]}, ${short(+data.times[index].toPrecision(5))} s`;
  redraws.forEach(draw => draw(index));
}
slider.value = Math.floor(data.times.length / 2);
player(document.getElementById("play"), slider, 5000, redraw);
addEventListener("resize", redraw);
redraw();
