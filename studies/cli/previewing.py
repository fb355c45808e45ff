"""What `adjsim preview --page` does."""

import os
import sys
import webbrowser
from collections.abc import Sequence

from studies.reports.preview.editing import Editor
from studies.reports.preview.page import PageServer
from studies.scene.files import find_scene


def serve_page(scene: str, overrides: Sequence[str]) -> None:
    """Serve the page of a scene until Ctrl-C."""
    server = PageServer(Editor(find_scene(scene), overrides))
    print(server.address, flush=True)
    print("Ctrl-C ends it.", file=sys.stderr)
    if sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
