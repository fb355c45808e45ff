const data = JSON.parse(document.getElementById("data").textContent);
const COLORS = ["#2f7ebc", "#d1662b", "#2e9460", "#a855b5", "#c2a01c", "#c0455e", "#4a6b8a", "#7a7a35"];
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const slider = document.getElementById("slider"), when = document.getElementById("when");
const redraws = [];
slider.max = data.times.length - 1;

function sharp(canvas) {  // the canvas in device pixels, and its size in those of the page
  const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  c.font = "12px system-ui, sans-serif";
  return [c, width, height];
}
const short = x => x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(1).replace(".0e", "e") : String(+x.toPrecision(3));

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
  h2.textContent = one.title; text.textContent = one.text; text.className = "caption";
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
    const level = one.log && marks.length < 2 ? [Math.ceil(low * 10) / 10, Math.floor(high * 10) / 10] : marks;
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
    if (data.marks.precision_matters_from !== null) { line(data.marks.precision_matters_from, "#c2a01c", [2, 3]); c.textAlign = "left"; c.fillText("float32 parts", X(data.marks.precision_matters_from) + 3, 2); }
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
if (canvas) {
  const unpack = one => {
    const bytes = Uint8Array.from(atob(one.data), x => x.charCodeAt(0)), values = new Float32Array(bytes.buffer);
    return index => values.subarray(3 * one.count * index, 3 * one.count * (index + 1));
  };
  const { points, edges, at, arrows } = data.view;
  const X = unpack(points), P = unpack(at), A = unpack(arrows);
  let turn = .55, tilt = .3, closer = 1;
  const boxes = data.times.map((_, i) => {
    const low = [1e30, 1e30, 1e30], high = [-1e30, -1e30, -1e30];
    for (const [get, one] of [[X, points], [P, at]]) {
      const values = get(i);
      for (let k = 0; k < values.length; k++) {
        low[k % 3] = Math.min(low[k % 3], values[k] * one.scale); high[k % 3] = Math.max(high[k % 3], values[k] * one.scale);
      }
    }
    return [low, high];
  });
  // The view goes with the bodies, so that they stay large however far they move.
  const half = [0, 1, 2].map(k => Math.max(...boxes.map(([low, high]) => (high[k] - low[k]) / 2)));
  const ground = Math.min(...boxes.map(([low]) => low[1])), size = 2 * Math.hypot(...half) || 1;
  const square = [1, 2, 5, 10].map(k => k * 10 ** Math.floor(Math.log10(size / 4))).find(k => k >= size / 4);
  redraws.push(index => {
    const [low, high] = boxes[index], middle = low.map((x, k) => (x + high[k]) / 2);
    const [c, width, height] = sharp(canvas);
    const [st, ct, sp, cp] = [Math.sin(turn), Math.cos(turn), Math.sin(tilt), Math.cos(tilt)];
    const flat = (x, y, z) => [x * ct - z * st, y * cp - (x * st + z * ct) * sp];
    const [wide, tall] = [0, 1].map(j => 2 * Math.max(...[-1, 1].flatMap(a => [-1, 1].map(b => Math.abs(
      flat(...half.map((v, k) => v * [a, b, 1][k]))[j])))));
    const zoom = .75 * closer * Math.min(width / (wide || size), height / (tall || size));
    const project = (values, k, scale) => {
      const [u, v] = flat(...[0, 1, 2].map(j => values[3 * k + j] * scale - middle[j]));
      return [width / 2 + zoom * u, height / 2 - zoom * v];
    };
    const line = (from, to) => {
      c.moveTo(...project(from, 0, 1)); c.lineTo(...project(to, 0, 1));
    };
    c.strokeStyle = style("--line"); c.lineWidth = 1; c.beginPath();
    const [gx, gz] = [0, 2].map(k => Math.round(middle[k] / square));
    for (let k = -8; k <= 8; k++) {
      line([(gx + k) * square, ground, (gz - 8) * square], [(gx + k) * square, ground, (gz + 8) * square]);
      line([(gx - 8) * square, ground, (gz + k) * square], [(gx + 8) * square, ground, (gz + k) * square]);
    }
    c.stroke();
    c.font = "600 12px system-ui, sans-serif";
    ["x", "y", "z"].forEach((name, k) => {
      const [u, v] = flat(+(k === 0), +(k === 1), +(k === 2)), [x0, y0] = [46, height - 46];
      c.strokeStyle = c.fillStyle = ["#c0455e", "#3a8a5f", "#2f6db3"][k]; c.lineWidth = 2;
      c.beginPath(); c.moveTo(x0, y0); c.lineTo(x0 + 30 * u, y0 - 30 * v); c.stroke();
      c.fillText(name, x0 + 40 * u - 3, y0 - 40 * v + 4);
    });
    c.font = "12px system-ui, sans-serif";
    const x = X(index), p = P(index), a = A(index);
    c.strokeStyle = style("--soft"); c.globalAlpha = .35; c.lineWidth = 1; c.beginPath();
    for (let e = 0; e < edges.length; e += 2) {
      c.moveTo(...project(x, edges[e], points.scale)); c.lineTo(...project(x, edges[e + 1], points.scale));
    }
    c.stroke();
    c.globalAlpha = 1;
    let largest = 0;
    for (let k = 0; k < at.count; k++) largest = Math.max(largest, Math.hypot(a[3 * k], a[3 * k + 1], a[3 * k + 2]));
    const tip = new Float32Array(3);
    c.lineWidth = 1.5;
    for (let k = 0; k < at.count && largest > 0; k++) {
      const length = Math.hypot(a[3 * k], a[3 * k + 1], a[3 * k + 2]) / largest;
      if (length < .01) continue;
      for (let j = 0; j < 3; j++) tip[j] = p[3 * k + j] * at.scale + .25 * size * a[3 * k + j] / largest;
      const from = project(p, k, at.scale), to = project(tip, 0, 1);
      c.strokeStyle = c.fillStyle = `hsl(${15 + 195 * (1 - length)} 75% 50%)`;
      c.beginPath(); c.moveTo(...from); c.lineTo(...to); c.stroke();
      const angle = Math.atan2(to[1] - from[1], to[0] - from[0]), head = Math.min(8, .4 * Math.hypot(to[0] - from[0], to[1] - from[1]));
      c.beginPath(); c.moveTo(...to);
      for (const s of [-.45, .45]) c.lineTo(to[0] - head * Math.cos(angle + s), to[1] - head * Math.sin(angle + s));
      c.fill();
    }
    c.fillStyle = style("--soft");
    c.fillText(`longest arrow: ${short(+(largest * arrows.scale).toPrecision(3))} per metre`, 8, 16);
    c.fillText(`squares of ${short(+square.toPrecision(1))} m, at the lowest point of the motion`, 90, height - 8);
  });
  canvas.addEventListener("pointermove", event => {
    if (!event.buttons) return;
    canvas.setPointerCapture(event.pointerId);
    turn += event.movementX * .01;
    tilt = Math.max(-1.5, Math.min(1.5, tilt + event.movementY * .01));
    redraw();
  });
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.shiftKey) return;  // the page scrolls
    event.preventDefault();
    closer = Math.max(.1, Math.min(20, closer * Math.exp(-.002 * (event.deltaY || event.deltaX))));
    redraw();
  }, { passive: false });
}

function redraw() {
  const index = +slider.value;
  when.textContent = `state ${data.steps[index]}, ${short(+data.times[index].toPrecision(5))} s`;
  redraws.forEach(draw => draw(index));
}
slider.value = Math.floor(data.times.length / 2);
slider.addEventListener("input", redraw);
addEventListener("resize", redraw);
redraw();
