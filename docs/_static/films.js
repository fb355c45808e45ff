// Films play where they are seen, unless the reader wants no motion or has paused them.
addEventListener("DOMContentLoaded", () => {
  const films = document.querySelectorAll("video[muted]");
  const buttons = document.querySelectorAll(".play-films");
  let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
  const seen = new Set();
  const update = () => {
    films.forEach((film) => {
      if (playing && seen.has(film)) film.play().catch(() => {});
      else film.pause();
    });
    buttons.forEach((button) => {
      button.textContent = playing ? "Pause the films" : "Play the films";
      button.setAttribute("aria-pressed", playing);
    });
  };
  const observer = new IntersectionObserver((entries) => {
    entries.forEach((e) => (e.isIntersecting ? seen.add(e.target) : seen.delete(e.target)));
    update();
  });
  films.forEach((film) => observer.observe(film));
  buttons.forEach((button) =>
    button.addEventListener("click", () => {
      playing = !playing;
      update();
    }),
  );
});
