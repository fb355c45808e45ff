// In listings side by side: a line from each number (3) to what undoes it in the other listing.
"use strict";

function connect(box) {
  const [left, right] = [...box.querySelectorAll("figure")].map((figure) => ({
    area: figure.querySelector("pre").getBoundingClientRect(),
    numbers: [...figure.querySelectorAll(".line-number")],
  }));
  const origin = box.getBoundingClientRect();
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.setAttribute("aria-hidden", "true");
  const alike = (numbers, { dataset }, names) =>
    numbers.filter((number) => names.every((name) => number.dataset[name] === dataset[name]));
  const undoes = (number) => !number.closest(".line").textContent.includes("replayed");
  const stands_alone = (number) => !range(number.closest(".line"), number).toString().trim();
  for (const number of left.numbers) {
    const is_alone = alike(left.numbers, number, ["line"]).length === 1;
    let others = alike(right.numbers, number, ["line", "function"]); // of a function's own adjoint
    if (!others.length && is_alone) others = alike(right.numbers, number, ["line"]);
    others = others.filter(undoes);
    const blocks = others.filter(stands_alone);
    const is_first = alike(left.numbers, number, ["line", "function"])[0] === number;
    if (!is_first || !others.length) continue;
    const from = [...range(number.closest(".line")).getClientRects()].at(-1);
    const to = (blocks[0] ?? others[0]).getBoundingClientRect();
    const [x1, x2] = [left.area.right - origin.x, right.area.left - origin.x];
    const [y1, y2] = [from, to].map((place) => place.y + place.height / 2 - origin.y);
    const path = lines.appendChild(document.createElementNS(lines.namespaceURI, "path"));
    const end = blocks.length ? to.left - origin.x - 4 : x2;
    path.setAttribute("d", `M${from.right - origin.x + 4} ${y1}H${x1}` +
      `C${(x1 + x2) / 2} ${y1} ${(x1 + x2) / 2} ${y2} ${x2} ${y2}H${end}`);
    path.style.setProperty("--hue", number.style.getPropertyValue("--hue"));
  }
  box.querySelector(":scope > svg")?.remove();
  box.append(lines);
}

// The text of a line, as far as an element in it.
function range(line, end) {
  const text = document.createRange();
  text.selectNodeContents(line);
  if (end) text.setEndBefore(end);
  return text;
}

addEventListener("load", () => {
  const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => connect(target)));
  document.querySelectorAll(".side-by-side").forEach((box) => observer.observe(box));
});
