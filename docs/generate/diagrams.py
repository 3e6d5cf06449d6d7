"""The state diagrams of docs/diagrams.

The connection executes a table, which is drawn as it is. The other machines have no table; their
transitions are observed while their tests run (observe.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from docs.generate.observe import in_process
from docs.generate.pages import link
from docs.generate.states import Diagram, Edge
from natsproto.connection.states import NEW, TRANSITIONS
from tests.rules import ROOT

FOLDER = ROOT / "docs" / "diagrams"
TEXTS = Path(__file__).with_name("texts") / "diagrams.md"
CONNECTION = "natsproto.connection.states"


class Subject(NamedTuple):
    """A machine to draw."""

    name: str
    module: str  # with dots
    title: str
    text: str


def read_subjects() -> tuple[str, list[Subject]]:
    """Return the introduction and the machines: `## name module title`, and what to say of it."""
    head, *parts = re.split(r"^## ", TEXTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    subjects: list[Subject] = []
    for part in parts:
        heading, _, text = part.partition("\n")
        name, module, title = heading.split(" ", 2)
        subjects.append(Subject(name, module, title, text.strip()))
    return head, subjects


def render() -> dict[Path, str]:
    """Return the text of every file."""
    page = FOLDER / "index.md"
    head, subjects = read_subjects()
    parts = [head]
    files: dict[Path, str] = {}
    for subject in subjects:
        edges, first, source = _transitions(subject.module)
        files[FOLDER / f"{subject.name}.svg"] = Diagram(edges, first).render(subject.title)
        path = f"{subject.module.replace('.', '/')}.py"
        see = f"{source} See {link(f'`{path}`', path, page)}."
        parts.append(f"## {subject.title}\n\n{subject.text}\n\n{see}\n\n")
        parts.append(f"![State diagram: {subject.title}]({subject.name}.svg)\n\n")
    files[page] = "".join(parts).rstrip() + "\n"
    return files


def _transitions(module: str) -> tuple[list[Edge], list[str], str]:
    """Return the transitions of a machine, its first states, and where they are from."""
    if module == CONNECTION:
        edges = [Edge(state, what, to) for (state, what), to in TRANSITIONS.items()]
        return edges, [NEW], "The diagram is drawn from the table."
    seen = in_process(module)
    edges = [Edge(*change) for change in seen["changes"]]
    return edges, seen["first"], "The diagram shows the transitions that the tests make."
