"""Copies the pages for the site, with links that work there.

A link to another page of the site stays relative. A link to any other file of the repository leads
to the project's address, which is in pyproject.toml.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.core import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = ROOT / "docs"
# Pages outside of docs, and their places in the site.
OTHERS = {
    "README.md": "index.md",
    "docs/index.md": "pages.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "spec_notes/README.md": "rules/index.md",
}
ASSETS = (".png", ".svg")
LINK = re.compile(r"(?P<head>\]\()(?P<path>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
FENCE = re.compile(r"^(```+)(\w*)(?: +(\S+))?[ \t]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?)[ #]*$", re.MULTILINE)


class Target(NamedTuple):
    """A link of a page: the file that it leads to, and the heading."""

    page: Path
    file: Path
    anchor: str


def address() -> str:
    """Return the project's address."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^Source = "(.+)"$', project, re.MULTILINE)
    assert found, "pyproject.toml has no Source"
    return found[1]


def places() -> dict[Path, Path]:
    """Return every page, and its place in the site."""
    found = {ROOT / name: Path(place) for name, place in OTHERS.items()}
    for page in sorted(DOCS.rglob("*.md")):
        if "generate" not in page.relative_to(DOCS).parts:
            found.setdefault(page, page.relative_to(DOCS))
    for page in sorted((ROOT / "spec_notes").glob("*.md")):
        found.setdefault(page, Path("rules", page.name))
    return found


def targets(page: Path) -> Iterator[Target]:
    """Yield the links of a page to files of the repository, and to headings."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for found in LINK.finditer(text):
        path, anchor = found["path"], (found["anchor"] or "").removeprefix("#")
        if "://" not in path and not path.startswith("mailto:"):
            yield Target(page, (page.parent / path).resolve() if path else page, anchor)


def slug(heading: str) -> str:
    """Return the anchor that Git hosts and the site give a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)  # a link counts as its text
    return re.sub(r"[^\w -]", "", text).strip().lower().replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in HEADING.findall(text):
        name = slug(heading)
        number = 0
        while name in found:  # as Git hosts do: a, a-1, a-2
            number += 1
            name = f"{slug(heading)}-{number}"
        found.add(name)
    return found


def dead_links(pages: dict[Path, Path]) -> list[str]:
    """Return the links that lead to no file, or to no heading of a page."""
    known: dict[Path, set[str]] = {page: anchors(page) for page in pages}
    dead = []
    for page in pages:
        for _, file, anchor in targets(page):
            if not file.exists():
                dead.append(f"{page.relative_to(ROOT)}: no file {file}")
            elif anchor and file in known and anchor not in known[file]:
                dead.append(f"{page.relative_to(ROOT)}: no heading {file.name}#{anchor}")
    return dead


def convert(page: Path, place: Path, pages: dict[Path, Path], source: str) -> str:
    """Return the text of a page as the site needs it."""
    kept: list[str] = []

    def keep_fence(found: re.Match[str]) -> str:
        # The name of a quoted file becomes the title of the block; code is not changed otherwise.
        fence, language, name, code = found.groups()
        title = f' title="{name}"' if name else ""
        kept.append(f"{fence}{language or 'text'}{title}\n{code}{fence}")
        return f"\0{len(kept) - 1}\0"

    def replace(found: re.Match[str]) -> str:
        path, anchor = found["path"], found["anchor"] or ""
        if not path or "://" in path or path.startswith("mailto:"):
            return found[0]
        file = (page.parent / path).resolve()
        if file in pages:
            path = os.path.relpath(pages[file], place.parent)
        elif file.suffix in ASSETS and file.is_relative_to(DOCS):
            path = os.path.relpath(file.relative_to(DOCS), place.parent)
        else:
            kind = "tree" if file.is_dir() else "blob"
            path = f"{source}/{kind}/main/{file.relative_to(ROOT).as_posix()}"
        return f"{found['head']}{path}{anchor})"

    text = FENCE.sub(keep_fence, page.read_text(encoding="utf-8"))
    text = LINK.sub(replace, text)
    text = text.replace("<details>", '<details markdown="1">')
    text = re.sub(r"^  (?=[-*] )", "    ", text, flags=re.MULTILINE)  # nested lists
    return re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)


def write(folder: Path) -> dict[Path, Path]:
    """Write all pages and pictures to a folder, and return the pages with their places."""
    pages = places()
    source = address()
    for page, place in pages.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(convert(page, place, pages, source), encoding="utf-8")
    for asset in DOCS.rglob("*"):
        if asset.suffix in ASSETS:
            target = folder / asset.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(asset, target)
    return pages
