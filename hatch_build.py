"""What the metadata of a release says of where its files are on the web.

`ADJSIM_URL` is the address of the repository, which whoever releases knows: with it the links of
the README are absolute, to files of the version's tag. Without it they are plain text.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://)([^)]+)\)")


def described(readme: str, url: str, version: str) -> str:
    """Return a README with absolute links, or without links to files where there is no `url`."""

    def absolute(link: re.Match[str]) -> str:
        image, text, path = link.groups()
        if path.startswith("#"):  # a heading of the page itself
            return link[0]
        if not url:
            return "" if image else text
        return f"{image}[{text}]({url}/{'raw' if image else 'blob'}/v{version}/{path})"

    return LINK.sub(absolute, readme)


class CustomMetadataHook(MetadataHookInterface):
    """Fills in description and addresses."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set readme and urls."""
        url = os.environ.get("ADJSIM_URL", "").rstrip("/")
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = Path(self.root, "adjsim", "__init__.py").read_text(encoding="utf-8")
        (version,) = re.findall(r'__version__ = "(.+)"', source)
        text = described(readme, url, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        pages = {"Repository": "", "Issues": "/issues", "Changelog": "/blob/HEAD/CHANGELOG.md"}
        metadata["urls"] = {name: f"{url}{page}" for name, page in pages.items()} if url else {}
