// The page of exercises: an editor, and a worker in which Python grades what is in it.
"use strict";

(() => {
  const { pyodide, files, exercises } = window.adjsimExercises;
  const TIME_LIMIT = 10; // seconds
  const element = (name) => document.getElementById(`exercise-${name}`);
  const [choice, lines, editor, button, again, save, report] =
    ["choice", "lines", "editor", "check", "again", "save", "report"].map(element);
  let worker, timer, exercise;

  // Runs in the worker, whose Python an endless loop of a student may block.
  function work(url, sources) {
    const send = (kind, text) => postMessage([kind, text]);
    const ready = (async () => {
      importScripts(`${url}pyodide.js`);
      const python = await loadPyodide({ indexURL: url });
      await python.loadPackage("numpy");
      for (const [path, text] of Object.entries(sources)) {
        const file = `/home/pyodide/${path}`; // where Python looks for modules
        python.FS.mkdirTree(file.replace(/[^/]*$/, ""));
        python.FS.writeFile(file, text);
      }
      return python.pyimport("studies.exercises.browser").check;
    })();
    ready.then(() => send("ready"), (error) => send("failed", `${error}`));
    onmessage = async ({ data: [number, text] }) => {
      try {
        const [passed, report] = (await ready)(number, text, () => send("ran"));
        send(passed ? "right" : "wrong", report);
      } catch (error) {
        send("wrong", `${error}`);
      }
    };
  }

  function start() {
    button.disabled = true;
    const url = new URL(pyodide, document.baseURI).href;
    const code = `(${work})(${JSON.stringify(url)}, ${JSON.stringify(files)})`;
    worker = new Worker(URL.createObjectURL(new Blob([code])));
    worker.onmessage = ({ data: [kind, text] }) => {
      if (kind === "failed") return explain(url, text);
      if (kind === "ran") {
        clearTimeout(timer);
        return say("Your numbers are compared ...");
      }
      button.disabled = false;
      if (kind !== "ready") finish(kind, text);
      else if (!report.className) say("Python is ready. Fill the gap at the end, then check.");
    };
  }

  // Says why Python is not there: which file is missing, and what to do.
  async function explain(url, error) {
    const advice = `On your own machine: adjsim exercise ${exercise.number}`;
    if (url.startsWith("file:")) {
      return say("Python cannot run in a page that was opened as a file. Serve its folder, and open " +
        `http://localhost:8000/:\n\n    python -m http.server -d OUT\n\n${advice}`, "wrong");
    }
    const names = ["pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip"];
    names.push("pyodide-lock.json"); // which names NumPy's file
    const list = await fetch(url + names.at(-1)).then((answer) => answer.json()).catch(() => null);
    if (list) names.push(list.packages.numpy.file_name);
    const is_there = (name) => fetch(url + name, { method: "HEAD" }).then((a) => a.ok, () => false);
    const there = await Promise.all(names.map(is_there));
    const missing = names.filter((_, k) => !there[k]);
    const cause = missing.length ? `missing there: ${missing.join(", ")}.` : error.trim().split("\n").at(-1);
    say(`Python could not be loaded from ${url}:\n${cause}\n\n` +
      "Who built this manual completes it with: python docs/_ext/offline_python.py OUT/pyodide\n" +
      advice, "wrong");
  }

  function say(text, kind = "") {
    report.textContent = text;
    report.className = kind;
  }

  function check() {
    if (button.disabled) return;
    button.disabled = true;
    say("Python runs your program ...");
    worker.postMessage([exercise.number, editor.value]);
    timer = setTimeout(() => {
      worker.terminate();
      say(`Your program has not ended after ${TIME_LIMIT} s. Does a loop never end?`, "wrong");
      start();
    }, 1000 * TIME_LIMIT);
  }

  function finish(kind, text) {
    clearTimeout(timer);
    say(text, kind);
    report.scrollIntoView({ block: "nearest" });
    if (kind === "right") {
      localStorage.setItem(`${exercise.file}: right`, "yes");
      name(choice.selectedOptions[0], exercise);
    }
  }

  function name(option, { number, title, chapter, file }) {
    const mark = localStorage.getItem(`${file}: right`) ? "\u2713 " : "";
    option.textContent = `${mark}${number}. ${title} (chapter ${chapter})`;
  }

  function open(number) {
    exercise = exercises.find((one) => one.number === number) ?? exercises[0];
    choice.value = exercise.number;
    editor.value = localStorage.getItem(exercise.file) ?? exercise.text;
    count();
    if (!button.disabled) say("");
  }

  function count() { // as many rows as lines: it never scrolls away from their numbers
    editor.rows = editor.value.split("\n").length + 4;
    lines.textContent = Array.from({ length: editor.rows }, (_, k) => k + 1).join("\n");
  }

  for (const one of exercises) {
    const option = choice.appendChild(new Option("", one.number));
    name(option, one);
  }
  choice.onchange = () => (location.hash = choice.value);
  window.onhashchange = () => open(Number(location.hash.slice(1)));
  editor.oninput = () => {
    localStorage.setItem(exercise.file, editor.value);
    count();
  };
  editor.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) return check();
    const before = editor.value.slice(0, editor.selectionStart);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    document.execCommand("insertText", false, `\n${line.match(/^ */)[0]}`); // keeps the undo list
  };
  button.onclick = check;
  again.onclick = () => {
    localStorage.removeItem(exercise.file);
    open(exercise.number);
  };
  save.onclick = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([editor.value], { type: "text/x-python" }));
    link.download = exercise.file;
    link.click();
  };
  window.onhashchange();
  say("Python is being loaded, about 15 MB the first time ...");
  start();
})();
