const $ = id => document.getElementById(id), canvas = $("view"), c = canvas.getContext("2d");
const HELP = {
  look: "Film with the scene over it: obstacles in green, held nodes in pink, the axes of the world, gravity.",
  camera: "Click points whose places in the scene you know, and type these: corners of a chessboard, of the body at rest, marks on the floor. Four or more that are not on one line give the camera.",
  floor: "Drag the floor up or down: the point below the bodies goes where you let go.",
  held: "Draw a rectangle around the nodes of a body that are held, in the first frame.",
  colour: "Click what is to be tracked by its colour.",
};
let state = null, mode = "look", points = [], middle = null, drag = null;
const pictures = new Map();
const shot = () => state.shots[+$("shot").value || 0], frame = () => +$("slider").value;

function picture(what, version) {
  const key = `${what}/${+$("shot").value || 0}/${frame()}`;
  if (!pictures.has(key)) {
    const image = new Image();
    image.onload = draw;
    image.src = `${key}?${version}`;
    pictures.set(key, image);
  }
  return pictures.get(key);
}
let version = 0;

function draw() {
  if (!state) return;
  const one = shot(), ratio = devicePixelRatio || 1;
  const scale = canvas.clientWidth / one.width;
  canvas.style.height = `${one.height * scale}px`;
  canvas.width = canvas.clientWidth * ratio; canvas.height = one.height * scale * ratio;
  c.scale(ratio, ratio);
  c.imageSmoothingEnabled = false;
  for (const [what, opacity] of [["film", 1], ["scene", $("opacity").value / 100]]) {
    const image = picture(what, version);
    c.globalAlpha = opacity;
    if (image.complete && image.naturalWidth) c.drawImage(image, 0, 0, one.width * scale, one.height * scale);
  }
  c.globalAlpha = 1;
  c.font = "13px system-ui, sans-serif";
  const at = p => [(p[0] + .5) * scale, (p[1] + .5) * scale];
  for (const mark of one.marks) {
    const ends = mark.ends[Math.min(frame(), mark.ends.length - 1)];
    c.strokeStyle = c.fillStyle = mark.color;
    c.lineWidth = mark.label ? 2.5 : 1;
    c.beginPath();
    for (const e of ends) {
      const [x, y] = at(e[0]);
      if (e.length === 2) { c.moveTo(x, y); c.lineTo(...at(e[1])); }
      else { c.moveTo(x + 3, y); c.arc(x, y, 3, 0, 7); }
    }
    if (mark.name === "held nodes") c.fill(); else c.stroke();
    if (mark.label && ends.length) { const [x, y] = at(ends[ends.length - 1][1]); c.fillText(mark.label, x + 4, y); }
  }
  c.strokeStyle = c.fillStyle = "#e6007a"; c.lineWidth = 2;
  const cross = (p, label) => {
    const [x, y] = at(p);
    c.beginPath(); c.moveTo(x - 7, y); c.lineTo(x + 7, y); c.moveTo(x, y - 7); c.lineTo(x, y + 7); c.stroke();
    c.fillText(label, x + 8, y - 8);
  };
  if (mode === "camera") points.forEach((p, k) => cross(p.pixel, `${k + 1}`));
  if (mode === "colour" && middle) cross(middle, "middle");
  if (drag && mode === "held") {
    const [[x, y], [u, v]] = [at(drag.from), at(drag.to)];
    c.strokeRect(x, y, u - x, v - y);
  }
  if (drag && mode === "floor") { const y = at(drag.to)[1]; c.beginPath(); c.moveTo(0, y); c.lineTo(canvas.clientWidth, y); c.stroke(); }
  $("when").textContent = `${one.times[frame()].toPrecision(3)} s`;
}

function show(fresh) {
  state = fresh;
  pictures.clear(); version++;
  if ($("shot").options.length !== state.shots.length)
    $("shot").replaceChildren(...state.shots.map((one, k) => new Option(one.key, k)));
  $("slider").max = shot().times.length - 1;
  $("say").textContent = state.say;
  $("write").textContent = `Write ${state.target}`;
  const item = text => { const li = document.createElement("li"); li.textContent = text; return li; };
  $("settings").replaceChildren(...Object.entries(state.settings).map(([key, value]) => {
    const li = item(`${key} = ${value} `), button = document.createElement("button");
    button.textContent = "undo"; button.onclick = () => send("set", { settings: { [key]: null } });
    li.append(button);
    return li;
  }));
  $("notes").replaceChildren(...(state.notes.length ? state.notes : ["Nothing."]).map(item));
  choose();
}

async function send(what, values) {
  $("say").textContent = "working …";
  const reply = await fetch(what, { method: "POST", body: JSON.stringify({ shot: +$("shot").value || 0, frame: frame(), ...values }) }).catch(() => null);
  const answer = reply && reply.ok ? await reply.json() : { error: "The server does not answer." };
  if (answer.error) { $("say").textContent = answer.error; return draw(); }
  if (what === "pick") { middle = answer.middle; $("say").textContent = answer.say; return draw(); }
  if (what === "solve") points = [];
  show(answer);
}

function choose() {
  document.querySelectorAll("[data-mode]").forEach(b => b.setAttribute("aria-pressed", b.dataset.mode === mode));
  $("help").textContent = HELP[mode];
  const names = { floor: state.planes, held: state.bodies }[mode];
  $("choice").replaceChildren();
  if (names) {
    const select = document.createElement("select");
    select.id = "name"; select.setAttribute("aria-label", "which");
    select.append(...names.map(name => new Option(state.held[name] ? `${name}: ${state.held[name]}` : name, name)));
    $("choice").append(names.length ? select : "There is none in this scene.");
  }
  if (mode === "camera") {
    const complete = () => points.length > 2 && points.every(p => p.place.every(x => x.trim() !== "" && Number.isFinite(Number(x))));
    const solve = document.createElement("button");
    points.forEach((p, k) => {
      const row = document.createElement("p");
      row.className = "tools";
      row.append(`${k + 1}`, ...[0, 1, 2].map(axis => {
        const input = document.createElement("input");
        input.style.cssText = "min-width:0;width:5rem"; input.placeholder = `${"xyz"[axis]} [m]`; input.value = p.place[axis] ?? "";
        input.setAttribute("aria-label", `${"xyz"[axis]} of point ${k + 1} in metres`);
        input.oninput = () => { p.place[axis] = input.value; solve.disabled = !complete(); };
        return input;
      }));
      const gone = document.createElement("button");
      gone.textContent = "×"; gone.setAttribute("aria-label", `remove point ${k + 1}`);
      gone.onclick = () => { points.splice(k, 1); choose(); };
      row.append(gone);
      $("choice").append(row);
    });
    solve.textContent = "Find the camera"; solve.disabled = !complete();
    solve.onclick = () => send("solve", { points: points.map(p => ({ pixel: p.pixel, place: p.place.map(Number) })) });
    $("choice").append(solve);
  }
  draw();
}

function pixel(event) {
  const box = canvas.getBoundingClientRect(), scale = box.width / shot().width;
  return [(event.clientX - box.left) / scale - .5, (event.clientY - box.top) / scale - .5];
}
canvas.onpointerdown = event => {
  const p = pixel(event);
  if (mode === "camera") { points.push({ pixel: p, place: ["", "", ""] }); choose(); }
  if (mode === "colour") send("pick", { pixel: p });
  if (mode === "floor" || mode === "held") { drag = { from: p, to: p }; canvas.setPointerCapture(event.pointerId); }
};
canvas.onpointermove = event => { if (drag) { drag.to = pixel(event); draw(); } };
canvas.onpointerup = () => {
  const name = $("name") && $("name").value, done = drag;
  drag = null;
  if (!done || !name) return draw();
  if (mode === "floor") send("floor", { name, pixel: done.to });
  else send("hold", { name, corners: [done.from, done.to] });
};
document.querySelectorAll("[data-mode]").forEach(b => { b.onclick = () => { mode = b.dataset.mode; if (mode === "held") $("slider").value = 0; choose(); }; });
$("shot").onchange = () => { points = []; middle = null; $("slider").max = shot().times.length - 1; $("slider").value = 0; choose(); };
$("slider").oninput = $("opacity").oninput = draw;
$("add").onclick = () => { const [key, ...rest] = $("setting").value.split("="); send("set", { settings: { [key.trim()]: rest.join("=").trim() } }); };
$("write").onclick = () => send("write", {});
addEventListener("resize", draw);
fetch("state").then(answer => answer.json()).then(show);
