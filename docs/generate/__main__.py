"""Write the generated pages, or with `--check` report those that are not current.

`--check` also reports rules that no test or no line of code names, as `python -m tests.rules` does:
both have to collect all tests, which takes longer than everything else that they do.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from docs.generate import adrs, architecture, book, command, diagrams, performance, rules_index
from docs.generate.book import Facts
from tests.core import name
from tests.rules import check, collect_tests, read_code, read_rules

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = (book.BOOK, diagrams.FOLDER)


def collect() -> Facts:
    tests = collect_tests()
    if isinstance(tests, int):
        sys.exit(tests)
    return Facts(read_rules(), read_code(), tests)


def render(facts: Facts) -> dict[Path, str]:
    """Return every generated file with its text."""
    files = {rules_index.PAGE: rules_index.render(*facts)}
    files[adrs.PAGE] = adrs.render(facts.rules, facts.tests)
    files.update(book.render(facts))
    files.update(diagrams.render())
    files.update(performance.render())
    files.update(command.render())
    files.update(architecture.render())
    return files


def main() -> int:
    facts = collect()
    files = render(facts)
    old = [path for folder in FOLDERS for path in folder.rglob("*") if path.is_file()]
    stale = [path for path in old if path not in files]
    if "--check" not in sys.argv:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for path in stale:
            path.unlink()
        print(f"{len(files)} files written")
        return 0
    stale += [path for path in files if not path.exists() or path.read_text("utf-8") != files[path]]
    for path in stale:
        print(f"{name(path)} is not current: run python -m docs.generate")
    return check(*facts) or (1 if stale else 0)


if __name__ == "__main__":
    sys.exit(main())
