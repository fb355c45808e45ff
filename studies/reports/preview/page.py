"""The page of `adjsim preview --page`: a server for one browser on this machine."""

import json
import os
import secrets
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

import numpy as np

from studies.reports.page import render
from studies.reports.preview.editing import Editor
from studies.reports.preview.shots import Shot
from studies.runs import media
from studies.scene.files import find_scene


MOST_SENT = 1_000_000  # bytes of a request


class PageServer(ThreadingHTTPServer):
    """A server of the page, on this machine alone.

    The address has a secret part, so that no other page can change anything.
    """

    def __init__(self, editor: Editor) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.editor, self.token, self.lock = editor, secrets.token_urlsafe(16), Lock()

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"


def serve_page(scene: str, overrides: Sequence[str]) -> None:
    """Serve the page of a scene until Ctrl-C."""
    with PageServer(Editor(find_scene(scene), overrides)) as server:
        print(server.address, flush=True)
        print("Ctrl-C ends it.", file=sys.stderr)
        has_screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if sys.platform != "linux" or has_screen:
            webbrowser.open(server.address)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    server: Any  # a PageServer

    def do_GET(self) -> None:
        with self.server.lock:
            kind, body = self._answer(self._parts())
        if body is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(kind, body)

    def do_POST(self) -> None:
        parts, length = self._parts(), self.headers.get("Content-Length", "")
        if not parts:
            return self.send_error(HTTPStatus.NOT_FOUND)
        if not length.isdecimal() or int(length) > MOST_SENT:
            return self.send_error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        sent = self.rfile.read(int(length))
        try:
            with self.server.lock:
                answer = _changed(self.server.editor, parts, dict(json.loads(sent or b"{}")))
        except (ValueError, LookupError, TypeError, OSError, ArithmeticError) as error:
            answer = {"error": str(error)}
        return self._send("application/json", json.dumps(answer).encode())

    def _parts(self) -> list[str]:
        """Return the parts of the path behind the secret one, [] for another."""
        first, *rest = self.path.split("?")[0].lstrip("/").split("/")
        is_ours = secrets.compare_digest(first.encode(), self.server.token.encode())
        return rest if is_ours else []

    def _answer(self, parts: list[str]) -> tuple[str, bytes | None]:
        """Return what is at a path, and its type; None where there is nothing."""
        editor = self.server.editor
        match parts:
            case [""]:
                page = render("preview", title=f"Preview of {editor.path.name}")
                return "text/html; charset=utf-8", page.encode()
            case ["state"]:
                return "application/json", json.dumps(editor.state()).encode()
            case ["film" | "scene" as what, shot, frame] if _is_in(editor, shot, frame):
                picture = _picture(editor.shots[int(shot)], int(frame), what)
                return "image/png", media.png_bytes(picture)
        return "", None

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of requests."""


def _changed(editor: Editor, parts: list[str], sent: dict[str, Any]) -> dict[str, Any]:
    """Return what the page shows after a change."""
    shot = editor.shots[int(sent.get("shot", 0))]
    match parts:
        case ["set"]:
            editor.change(sent["settings"])
            return editor.state()
        case ["solve"]:
            points = [(point["pixel"], point["place"]) for point in sent["points"]]
            return editor.state(editor.solve(shot, points))
        case ["floor"]:
            return editor.state(editor.drag_floor(shot, sent["name"], sent["pixel"]))
        case ["hold"]:
            return editor.state(editor.hold(shot, sent["name"], sent["corners"]))
        case ["pick"]:
            return editor.pick(shot, int(sent["frame"]), sent["pixel"])
        case ["write"]:
            return editor.state(f"{editor.write()} is written.")
    raise ValueError(f"There is nothing at {'/'.join(parts)!r}.")


def _is_in(editor: Editor, shot: str, frame: str) -> bool:
    """Whether there is such a frame."""
    if not (shot.isdecimal() and frame.isdecimal() and int(shot) < len(editor.shots)):
        return False
    return int(frame) < len(editor.shots[int(shot)].images)


def _picture(shot: Shot, frame: int, what: str) -> np.ndarray:
    """Return a frame of the film, (H, W, 3), or of the scene, (H, W, 4), in 8 bits."""
    if what == "film" and shot.data is not None:
        return media.as_uint8(shot.data.frames[shot.indices[frame]][..., :3])
    if what == "film":
        return np.full((*shot.size, 3), 235, np.uint8)
    return media.as_uint8(shot.images[frame])
