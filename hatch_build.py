"""What the metadata of a release says of where its files are on the web, and its compiled kernels.

`ADJSIM_URL` is the address of the repository, which whoever releases knows: with it the links of
the README are absolute, to files of the version's tag. Without it they are plain text.

`ADJSIM_KERNELS` is a pack that `benchmarks/kernel_pack.py` made: with it a wheel carries compiled
kernels and is for one version of Python on one platform. Without it a wheel is for all of them.
"""

import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
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


def wheel_tag(pack: str) -> str:
    """Return the tag of a wheel that carries a pack of kernels."""
    with zipfile.ZipFile(pack) as archive:
        python = json.loads(archive.read("versions.json"))["Python"]
    version = re.fullmatch(r"cpython-(\d+)-x86_64-linux-gnu", python)
    if version is None:
        raise ValueError(f"ADJSIM_KERNELS={pack} is of {python}: no wheel is for that.")
    return f"cp{version[1]}-cp{version[1]}-manylinux_2_17_x86_64"


class CustomBuildHook(BuildHookInterface):
    """Puts the pack of kernels into a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the pack, and name the wheel after what it is for."""
        pack = os.environ.get("ADJSIM_KERNELS")
        if pack and version != "editable":
            build_data["force_include"][pack] = "adjsim/jit/kernels.zip"
            build_data["pure_python"], build_data["tag"] = False, wheel_tag(pack)
