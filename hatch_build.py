"""Makes README ready for a package index, which does not know the repository.

README.md links to files of the repository with relative paths, so that it works in a clone, in a
fork and on any Git host. The description of a release has the same links as addresses below the
`Source` of pyproject.toml, at the tag of the release.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# [text](target), ![text](target), and the addresses of HTML elements; not #anchors, not https://.
LINK = re.compile(r"""(?P<head>\]\(|\b(?:href|src|srcset)=")(?!#|[a-z]+:)(?P<path>[^)"#\s]+)""")
IMAGES = (".gif", ".png", ".svg")


def absolute(text: str, source: str, version: str) -> str:
    """Return a page of the repository with absolute links."""
    raw = source.replace("//github.com/", "//raw.githubusercontent.com/")

    def replace(found: re.Match[str]) -> str:
        path = found["path"]
        base = f"{raw}/v{version}" if path.endswith(IMAGES) else f"{source}/blob/v{version}"
        return f"{found['head']}{base}/{path}"

    return LINK.sub(replace, text)


class CustomMetadataHook(MetadataHookInterface):
    """Adds the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the field."""
        version = Path(self.root, "natsproto", "version.py").read_text(encoding="utf-8")
        number = version.rpartition("VERSION = ")[2].strip().strip('"')
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata["urls"]["Source"]
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, source, number),
        }
