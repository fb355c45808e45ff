// What scrolls sideways can be scrolled from the keyboard.
addEventListener("load", () => {
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  const boxes = "article :is(pre, div.math, .math-wrapper, .table-wrapper, .pictures)";
  document.querySelectorAll(boxes).forEach((box) => observer.observe(box));
});
