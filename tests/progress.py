"""Progress: how far long runs are, so that several of them add up to one.

A JSON file has a count for each mode or harness. It belongs to one state of the library: if any
module of the core has changed since, the counts begin again at 0.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from tests.core import MODULES

if TYPE_CHECKING:
    from pathlib import Path


def fingerprint() -> str:
    """Return a digest of the sources of the core."""
    digest = hashlib.sha256()
    for path in MODULES:
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Progress:
    """Counts by name, which are saved after each change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fingerprint = fingerprint()
        saved = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        same = saved.get("fingerprint") == self._fingerprint
        self.counts: dict[str, int] = saved["counts"] if same else {}

    def __getitem__(self, name: str) -> int:
        return self.counts.get(name, 0)

    def add(self, name: str, count: int) -> None:
        """Count what has been done, and save it."""
        self.counts[name] = self[name] + count
        content = {"fingerprint": self._fingerprint, "counts": self.counts}
        self._path.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")
