"""Build the site: stage the pages, add the reference and the explorer, run Zensical, check.

    python -m docs.site [--output build/docs] [--no-explorer]

It fails on a dead link, a warning, a page that is not in the navigation, or a misspelled word.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from docs.site import reference, stage
from tests.core import ROOT

CONFIG = Path(__file__).with_name("zensical.toml")
EXPLORER = "explore/index.html"
# Folders whose pages are sections of the navigation, and pages that are on no list.
FOLDERS = {"book": "The book", "rules": "Rules"}
MORE = [
    ("All pages", "pages.md"),
    ("Security policy", "security-policy.md"),
    ("Code of conduct", "code-of-conduct.md"),
]
WORKER = "iframe-worker@1.0.4"
SHIM = re.compile(r'<script src="https://unpkg.com/iframe-worker/shim"[^>]*></script>')
OPEN = f"""[Open the explorer]({EXPLORER}){{ .md-button .md-button--primary target=_blank }}

If you opened this site from a folder, the explorer needs a web server, such as
`python3 -m http.server --directory build/docs`.

"""


def main() -> int:
    """Build the site and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m docs.site")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--no-explorer", action="store_true", help="it needs npm, or its cache")
    asked = parser.parse_args()
    spelling()
    work = ROOT / "build" / "pages"
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(asked.output, ignore_errors=True)
    pages = stage.write(work / "docs")
    shutil.copy(CONFIG.with_name("extra.css"), work / "docs")
    dead = stage.dead_links(pages)
    if dead:
        raise SystemExit("\n".join(dead))
    listed = reference.write(work / "docs" / "reference")
    if not asked.no_explorer:
        add_explorer(work / "docs")
    (work / "zensical.toml").write_text(configuration(pages, listed), encoding="utf-8")
    run("zensical", "build", "--clean", "--strict", cwd=work)
    shutil.copytree(work / "site", asked.output)
    localize(asked.output)
    broken = check(asked.output)
    if broken:
        raise SystemExit("\n".join(broken))
    count = len(list(asked.output.rglob("*.html")))
    print(f"{count} pages in {asked.output}: open {asked.output / 'index.html'}")
    return 0


def spelling() -> None:
    """Check the spelling of all pages, in American English."""
    run("codespell_lib", *map(str, stage.places()), cwd=ROOT)


def add_explorer(folder: Path) -> None:
    """Add the explorer as static files, and a button to its page."""
    run("jetstream.tools.cli", "explore", "--build", str(folder / "explore"), cwd=ROOT)
    page = folder / "explorer.md"
    title, _, text = page.read_text(encoding="utf-8").partition("\n\n")
    page.write_text(f"{title}\n\n{OPEN}{text}", encoding="utf-8")


def configuration(pages: dict[Path, Path], listed: list[tuple[str, str]]) -> str:
    """Return the configuration of Zensical: zensical.toml with the address and the navigation."""
    text = CONFIG.read_text(encoding="utf-8")
    text = text.replace("REPO_URL", stage.address()).replace("SOURCES", str(ROOT))
    return text.replace("NAVIGATION", "\n".join(navigation(pages, listed)))


def navigation(pages: dict[Path, Path], listed: list[tuple[str, str]]) -> list[str]:
    """Return the navigation: the lists of docs/index.md, and the pages that they lead to."""
    index = ROOT / "docs" / "index.md"
    sections: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in index.read_text(encoding="utf-8").splitlines():
        if line.endswith(":") and not line.startswith("-"):
            name = line.rstrip(":").partition(",")[0]
            sections[name] = []
        for title, path in re.findall(r"\[([^]]+)\]\(([^)]+\.md)\)", line):
            place = pages[(index.parent / path).resolve()]
            if place.parent.name not in FOLDERS:
                sections[name].append((title[0].upper() + title[1:], str(place)))
    sections["Reference"] += [(title, place) for place, title in listed]
    sections["For contributors"] += MORE
    for folder, name in FOLDERS.items():
        sections[name] = _under(pages, folder)
    lines = ['  { "Home" = "index.md" },']
    for name, entries in sections.items():
        lines += [f'  {{ "{name}" = [', *(_entry(*each) for each in entries), "  ] },"]
    return lines


def _under(pages: dict[Path, Path], folder: str) -> list[tuple[str, str]]:
    """Return the pages of a folder with their titles, the index first, chapters by number."""
    found = []
    for page, place in pages.items():
        if place.parent == Path(folder):
            title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            found.append((title.replace("`", ""), str(place)))
    number = re.compile(r"\d+")

    def order(each: tuple[str, str]) -> tuple[bool, int]:
        chapter = number.match(each[0])
        return not each[1].endswith("index.md"), int(chapter[0]) if chapter else 0

    return sorted(found, key=order)


def _entry(title: str, place: str) -> str:
    title = title.replace('"', "'")
    return f'    {{ "{title}" = "{place}" }},'


def localize(site: Path) -> None:
    """Let the site carry the one script that it would load from another host.

    With it, the search works even if the pages are opened from a folder. Without npm it is left
    out, and the search needs a web server.
    """
    target = site / "assets" / "javascripts" / "iframe-worker.js"
    npm = shutil.which("npm")
    if npm:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([npm, "pack", "--silent", WORKER], cwd=folder, check=True)
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as files:
                found = files.extractfile("package/shim/index.js")
                assert found, f"{WORKER} has no shim"
                target.write_bytes(found.read())
    for page in site.rglob("*.html"):
        path = os.path.relpath(target, page.parent)
        script = f'<script src="{path}"></script>' if npm else ""
        text = page.read_text(encoding="utf-8")
        page.write_text(SHIM.sub(script, text), encoding="utf-8")


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note them."""
        found = dict(attrs)
        self.anchors.add(found.get("id") or found.get("name") or "")
        link = found.get("href") or found.get("src")
        if link and tag in ("a", "img", "link", "script"):
            self.links.append(link)
            if tag != "a" and found.get("rel") not in ("canonical", "next", "prev"):
                self.loads.append(link)


def check(site: Path) -> list[str]:
    """Return the links of the built pages that lead nowhere, or out for something they need."""
    pages: dict[Path, Page] = {}
    for path in site.rglob("*.html"):
        if "explore" not in path.relative_to(site).parts:
            pages[path] = Page()
            pages[path].feed(path.read_text(encoding="utf-8"))
    broken = [
        f"{path.relative_to(site)}: loads {link} from another host"
        for path, page in pages.items()
        for link in page.loads
        if "://" in link
    ]
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = unquote(link).partition("#")
            if "://" in target or target.startswith(("mailto:", "data:", "/", "javascript:")):
                continue  # "/" appears only in 404.html, which has no fixed place
            file = (path.parent / target.partition("?")[0]).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                broken.append(f"{path.relative_to(site)}: no file {link}")
            elif anchor and file in pages and anchor not in pages[file].anchors:
                broken.append(f"{path.relative_to(site)}: no anchor {link}")
    return sorted(set(broken))


def run(module: str, *args: str, cwd: Path) -> None:
    """Run a program of this environment; a failure ends the build."""
    done = subprocess.run([sys.executable, "-m", module, *args], cwd=cwd)
    if done.returncode:
        raise SystemExit(f"{module} failed")


if __name__ == "__main__":
    sys.exit(main())
