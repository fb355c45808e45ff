// Bodies in space on a canvas, to be turned: `space(canvas, view, redraw)` returns what draws a frame.
const COLORS = ["#2f7ebc", "#d1662b", "#2e9460", "#a855b5", "#c2a01c", "#c0455e", "#4a6b8a", "#7a7a35"];
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const short = x => x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(1).replace(".0e", "e") : String(+x.toPrecision(3));
const round = x => [1, 2, 5, 10].map(k => k * 10 ** Math.floor(Math.log10(x))).find(k => k >= x * (1 - 1e-9));

function sharp(canvas) {  // the canvas in device pixels, and its size in those of the page
  const width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  c.font = "12px system-ui, sans-serif";
  return [c, width, height];
}

function unpacked(one) {  // places or arrows of a frame, or of all where they do not move
  const bytes = Uint8Array.from(atob(one.data), x => x.charCodeAt(0)), row = 3 * one.count;
  const values = Float32Array.from(new globalThis[one.type](bytes.buffer), x => x * one.scale);
  const last = Math.max(values.length / row - 1, 0) || 0;
  return index => values.subarray(row * Math.min(index, last), row * (Math.min(index, last) + 1));
}

function player(button, slider, duration, show) {  // of all frames [ms]
  let timer = null;
  const frames = +slider.max + 1, stop = () => { clearInterval(timer); timer = null; button.textContent = "Play"; };
  button.addEventListener("click", () => {
    if (timer) return stop();
    button.textContent = "Pause";
    timer = setInterval(() => { slider.value = (+slider.value + 1) % frames; show(); }, duration / frames);
  });
  slider.addEventListener("input", () => { stop(); show(); });
}

function space(canvas, view, redraw) {
  const [X, P, A, W] = ["points", "at", "arrows", "wires"].map(key => unpacked(view[key]));
  const { faces, edges, bodies } = view, frames = view.frames, at = view.at.count;
  let turn = .55, tilt = .3, closer = 1;
  const around = sets => {
    const low = [1e30, 1e30, 1e30], high = [-1e30, -1e30, -1e30];
    for (const values of sets) for (let k = 0; k < values.length; k++) {
      low[k % 3] = Math.min(low[k % 3], values[k]); high[k % 3] = Math.max(high[k % 3], values[k]);
    }
    return [low, high];
  };
  const halves = ([low, high]) => low.map((x, k) => (high[k] - x) / 2);
  const boxes = Array.from({ length: frames }, (_, i) => around([X(i), P(i)]));
  const whole = around(boxes.flat());
  // Where bodies move far, the view goes with them, so that they stay large.
  const largest = [0, 1, 2].map(k => Math.max(...boxes.map(box => halves(box)[k])));
  const follows = Math.hypot(...halves(whole)) > 3 * Math.hypot(...largest);
  const half = follows ? largest : halves(whole), size = 2 * Math.hypot(...half) || 1;
  const ground = whole[0][1], square = round(size / 4), colors = bodies.flatMap(
    (count, k) => Array(count).fill([1, 3, 5].map(i => parseInt(COLORS[(k + 1) % COLORS.length].slice(i, i + 2), 16))));

  canvas.addEventListener("pointermove", event => {
    if (!event.buttons) return;
    canvas.setPointerCapture(event.pointerId);
    move(event.movementX * .01, event.movementY * .01);
  });
  canvas.addEventListener("keydown", event => {
    const ways = { ArrowLeft: [-.1, 0], ArrowRight: [.1, 0], ArrowUp: [0, -.1], ArrowDown: [0, .1] };
    if (!ways[event.key]) return;
    event.preventDefault();
    move(...ways[event.key]);
  });
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.shiftKey) return;  // the page scrolls
    event.preventDefault();
    closer = Math.max(.1, Math.min(20, closer * Math.exp(-.002 * (event.deltaY || event.deltaX))));
    redraw();
  }, { passive: false });
  const move = (across, down) => {
    turn += across;
    tilt = Math.max(-1.5, Math.min(1.5, tilt + down));
    redraw();
  };

  return index => {
    const [low, high] = follows ? boxes[index] : whole, middle = low.map((x, k) => (x + high[k]) / 2);
    const [c, width, height] = sharp(canvas);
    const [st, ct, sp, cp] = [Math.sin(turn), Math.cos(turn), Math.sin(tilt), Math.cos(tilt)];
    const flat = (x, y, z) => [x * ct - z * st, y * cp - (x * st + z * ct) * sp, (x * st + z * ct) * cp + y * sp];
    const [wide, tall] = [0, 1].map(j => 2 * Math.max(...[-1, 1].flatMap(a => [-1, 1].map(b => Math.abs(
      flat(...half.map((v, k) => v * [a, b, 1][k]))[j])))));
    const zoom = .75 * closer * Math.min(width / (wide || size), height / (tall || size));
    const project = (values, k = 0) => {
      const [u, v, w] = flat(...[0, 1, 2].map(j => values[3 * k + j] - middle[j]));
      return [width / 2 + zoom * u, height / 2 - zoom * v, w];
    };
    const lines = (values, pairs) => {
      c.beginPath();
      for (let e = 0; e < pairs.length; e += 2) {
        c.moveTo(...project(values, pairs[e]).slice(0, 2)); c.lineTo(...project(values, pairs[e + 1]).slice(0, 2));
      }
      c.stroke();
    };
    // The floor: obstacles, or squares at the lowest point of the motion.
    c.lineWidth = 1; c.strokeStyle = style("--line");
    if (view.wires.count) { c.strokeStyle = "#23838e"; lines(W(index), [...Array(view.wires.count).keys()]); }
    else {
      const [gx, gz] = [0, 2].map(k => Math.round(middle[k] / square)), ends = [];
      for (let k = -8; k <= 8; k++) {
        ends.push((gx + k) * square, ground, (gz - 8) * square, (gx + k) * square, ground, (gz + 8) * square);
        ends.push((gx - 8) * square, ground, (gz + k) * square, (gx + 8) * square, ground, (gz + k) * square);
      }
      lines(ends, [...Array(ends.length / 3).keys()]);
    }
    if (faces.length && index && !follows) {  // the first frame, as a shadow without shading
      const seen = Array.from({ length: view.points.count }, (_, k) => project(X(0), k));
      c.fillStyle = style("--line"); c.beginPath();
      for (let f = 0; f < faces.length; f += 3) {
        const [p, q, r] = [0, 1, 2].map(k => seen[faces[f + k]]);
        const turned = (q[0] - p[0]) * (r[1] - p[1]) < (q[1] - p[1]) * (r[0] - p[0]);
        c.moveTo(p[0], p[1]);
        for (const [u, v] of turned ? [r, q] : [q, r]) c.lineTo(u, v);
      }
      c.fill();
    }
    const x = X(index), p = P(index), a = A(index);
    if (faces.length) {  // from the farthest to the nearest
      const seen = Array.from({ length: view.points.count }, (_, k) => project(x, k));
      const depth = f => seen[faces[3 * f]][2] + seen[faces[3 * f + 1]][2] + seen[faces[3 * f + 2]][2];
      const depths = Float32Array.from(colors, (_, f) => depth(f));
      for (const f of [...colors.keys()].sort((i, j) => depths[i] - depths[j])) {
        const [o, q, r] = [0, 1, 2].map(k => seen[faces[3 * f + k]]);
        const [u, v] = [q, r].map(e => [e[0] - o[0], o[1] - e[1], zoom * (e[2] - o[2])]);
        const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
        const lit = .45 + .6 * Math.abs(.35 * n[0] + .5 * n[1] + .79 * n[2]) / (Math.hypot(...n) || 1);
        c.fillStyle = c.strokeStyle = `rgb(${colors[f].map(k => Math.min(255, k * lit))})`;
        c.beginPath(); c.moveTo(o[0], o[1]); c.lineTo(q[0], q[1]); c.lineTo(r[0], r[1]); c.closePath();
        c.fill(); c.stroke();
      }
    }
    c.strokeStyle = style("--soft"); c.globalAlpha = .35;
    lines(x, edges);
    c.globalAlpha = 1; c.lineWidth = 1.5;
    const sizes = Array.from({ length: at }, (_, k) => Math.hypot(a[3 * k], a[3 * k + 1], a[3 * k + 2]));
    const longest = Math.max(0, ...sizes);
    for (let k = 0; k < at; k++) {
      const length = sizes[k] / longest;
      if (!(length >= .01)) continue;
      const from = project(p, k), to = project([0, 1, 2].map(j => p[3 * k + j] + .25 * size * a[3 * k + j] / longest));
      c.strokeStyle = c.fillStyle = `hsl(${15 + 195 * (1 - length)} 75% 50%)`;
      c.beginPath(); c.moveTo(from[0], from[1]); c.lineTo(to[0], to[1]); c.stroke();
      const angle = Math.atan2(to[1] - from[1], to[0] - from[0]), head = Math.min(8, .4 * Math.hypot(to[0] - from[0], to[1] - from[1]));
      c.beginPath(); c.moveTo(to[0], to[1]);
      for (const s of [-.45, .45]) c.lineTo(to[0] - head * Math.cos(angle + s), to[1] - head * Math.sin(angle + s));
      c.fill();
    }
    const axis = round(size / 16), [x0, y0] = [46, height - 46];
    c.font = "600 12px system-ui, sans-serif"; c.lineWidth = 2;
    ["x", "y", "z"].forEach((name, k) => {
      const [u, v] = flat(+(k === 0), +(k === 1), +(k === 2));
      c.strokeStyle = c.fillStyle = ["#c0455e", "#3a8a5f", "#2f7ebc"][k];
      c.beginPath(); c.moveTo(x0, y0); c.lineTo(x0 + zoom * axis * u, y0 - zoom * axis * v); c.stroke();
      c.fillText(name, x0 + (zoom * axis + 10) * u - 3, y0 - (zoom * axis + 10) * v + 4);
    });
    c.font = "12px system-ui, sans-serif"; c.fillStyle = style("--soft");
    if (at) c.fillText(`longest arrow: ${short(longest)} per metre`, 8, 16);
    c.fillText(`axes of ${short(axis)} m${view.wires.count ? "" : `, squares of ${short(square)} m`}`, 90, height - 8);
  };
}
