"""Open pages in headless Chromium, over its debugging pipe."""

import json
import os
import shutil
import subprocess
import tempfile
from base64 import b64decode
from contextlib import contextmanager
from itertools import count
from pathlib import Path


NAMES = "chromium", "chromium-browser", "google-chrome"
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab."""

    def __init__(self, write, read):
        self._write, self._read, self._ids, self._tab = write, read, count(1), {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._tab = {"sessionId": attached["sessionId"]}
        self.call("Page.enable")

    def call(self, method, **params):
        """Return the result of a command of the DevTools protocol."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params, **self._tab}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda reply: reply.get("id") == number)
        assert "error" not in answer, answer
        return answer["result"]

    def _wait(self, is_it):
        while True:
            text = b"".join(iter(lambda: self._read.read(1), b"\0"))
            if is_it(message := json.loads(text)):
                return message

    def open(self, url, width=1280, height=900):
        """Load a page in a window of a size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        self.call("Page.navigate", url=url)
        self._wait(lambda event: event.get("method") == "Page.loadEventFired")

    def set_theme(self, theme):
        """Prefer "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def run(self, code):
        """Return the value of JavaScript; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def save(self, path, **options):
        """Write a picture of the window."""
        data = self.call("Page.captureScreenshot", **options)["data"]
        Path(path).write_bytes(b64decode(data))


@contextmanager
def page():
    """Start Chromium and give a page of it."""
    to_child, write = os.pipe()
    read, from_child = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu"]
        command = [CHROMIUM, *options, f"--user-data-dir={profile}"]
        # Chromium reads from 3 and writes to 4.
        shell = ["bash", "-c", f'exec "$@" 3<&{to_child} 4>&{from_child}', "bash", *command]
        process = subprocess.Popen(
            shell,
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        try:
            with os.fdopen(read, "rb") as file:
                yield Page(write, file)
        finally:
            os.close(write)
            process.terminate()
            process.wait()
