"""The book: the recorded dialogues of tests/vectors, explained, in docs/book.

The introductions are written by hand, in docs/generate/chapters. The steps, the charts, and the
lists of rules are generated. A chapter is a file like this:

    # Title of the chapter

    Its introduction.

    ## 17 Title of a dialogue

    Its introduction.

    remark: A sentence that replaces the first remark of the recording, and so on.
    rules: CONN-1 SUB-3, which it shows although they do not cite it
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from docs.generate import dialogue as steps
from docs.generate import sequence
from docs.generate.pages import code_links, links_to_tests, rule_link, slug
from docs.generate.rules_index import escape
from tests.rules import ROOT

if TYPE_CHECKING:
    from docs.generate.dialogue import Dialogue, Step
    from tests.rules import Place, Rule

VECTORS = ROOT / "tests" / "vectors"
CHAPTERS = Path(__file__).with_name("chapters")
BOOK = ROOT / "docs" / "book"
# Chapters about the first frames of a connection show them all.
WHOLE = ("handshake", "credentials")
RANGE = re.compile(r"\[(\d+)\] to \[(\d+)\]")

INDEX = Path(__file__).with_name("texts") / "book.md"


class Section(NamedTuple):
    number: int
    title: str
    text: str
    remarks: list[str]
    rules: list[str]


class Chapter(NamedTuple):
    name: str  # of its file, without the number
    title: str
    text: str
    sections: list[Section]


class Facts(NamedTuple):
    """What the sources say about the rules."""

    rules: dict[str, Rule]
    code: dict[str, list[Place]]
    tests: dict[str, list[str]]


def read_chapters(folder: Path = CHAPTERS) -> list[Chapter]:
    return [_read_chapter(path) for path in sorted(folder.glob("*.md"))]


def _read_chapter(path: Path) -> Chapter:
    head, *parts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    title, _, text = head.partition("\n")
    sections = [_read_section(part) for part in parts]
    return Chapter(path.stem.partition("-")[2], title.lstrip("# "), text.strip(), sections)


def _read_section(part: str) -> Section:
    heading, _, body = part.partition("\n")
    number, _, title = heading.partition(" ")
    remarks = re.findall(r"^remark: (.+)$", body, re.MULTILINE)
    rules = [
        each for line in re.findall(r"^rules: (.+)$", body, re.MULTILINE) for each in line.split()
    ]
    text = re.sub(r"^(remark|rules): .+\n?", "", body, flags=re.MULTILINE).strip()
    return Section(int(number), title, text, remarks, rules)


def recordings() -> dict[int, Path]:
    """Return the recordings by number."""
    return {int(path.stem.partition("-")[0]): path for path in VECTORS.glob("*.json")}


def render(facts: Facts) -> dict[Path, str]:
    """Return the text of every file of the book."""
    chapters = read_chapters()
    files: dict[Path, str] = {BOOK / "index.md": _index(chapters)}
    paths = recordings()
    for number, chapter in enumerate(chapters, 1):
        page = BOOK / f"{chapter.name}.md"
        parts = [f"# {number}. {chapter.title}\n\n{chapter.text}\n"]
        quoted: set[str] = set()  # rules whose text the chapter has already
        for section in chapter.sections:
            path = paths[section.number]
            dialogue = steps.read(path, section.remarks, chapter.name in WHOLE)
            title = f"{section.title} (dialogue {section.number})"
            files[BOOK / "charts" / f"{path.stem}.svg"] = sequence.render(dialogue, title)
            parts.append(_section(section, dialogue))
            rules = rules_shown(section, facts.rules)
            parts.append(_rules([rule for rule in rules if rule.id not in quoted], facts, page))
            parts.append(_repeated([rule for rule in rules if rule.id in quoted], page))
            quoted.update(rule.id for rule in rules)
        parts.append(_footer(chapters, number))
        files[page] = "\n".join(part for part in parts if part)
    return files


def _index(chapters: list[Chapter]) -> str:
    lines = [INDEX.read_text(encoding="utf-8"), "\n"]
    for number, chapter in enumerate(chapters, 1):
        lines.append(f"{number}. [{chapter.title}]({chapter.name}.md)\n")
        lines += [
            f"   - [{section.title}]({chapter.name}.md#{slug(_heading(section))})\n"
            for section in chapter.sections
        ]
    return "".join(lines)


def _heading(section: Section) -> str:
    return f"{section.number}. {section.title}"


def _footer(chapters: list[Chapter], number: int) -> str:
    links = ["[Contents](index.md)"]
    if number > 1:
        before = chapters[number - 2]
        links.insert(0, f"[← {before.title}]({before.name}.md)")
    if number < len(chapters):
        after = chapters[number]
        links.append(f"[{after.title} →]({after.name}.md)")
    return "---\n\n" + " · ".join(links) + "\n"


def _section(section: Section, dialogue: Dialogue) -> str:
    several = len(dialogue.clients) > 1
    chart = f"![Sequence chart: {section.title}](charts/{dialogue.name}.svg)"
    rows = "".join(_row(step, several) for step in dialogue.steps)
    table = f"| time | | frame | explanation |\n|---:|---|---|---|\n{rows}"
    recorded = f"Recorded from {dialogue.server}: `tests/vectors/{dialogue.name}.json`."
    parts = [f"## {_heading(section)}", section.text, chart, table, recorded]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _row(step: Step, several: bool) -> str:
    arrow = {steps.SENT: "→", steps.RECEIVED: "←"}.get(step.action, "")
    if several and step.client:
        arrow = f"{step.client} {arrow}".strip()
    wire = "<br>".join(_code(line) for line in step.wire.split("\n") if line)
    text = escape(step.text)
    if step.action in (steps.REMARK, steps.SKIPPED):
        text = f"*{text}*"
    return f"| {steps.clock(step.time)} | {arrow} | {wire} | {text} |\n"


def _code(line: str) -> str:
    # Long lines break only where a browser may break them; a table is wide enough for these.
    line = escape(line if len(line) <= 110 else f"{line[:107]}...")
    ticks = "``" if "`" in line else "`"
    return f"{ticks}{line}{ticks}"


def rules_shown(section: Section, rules: dict[str, Rule]) -> list[Rule]:
    """Return the rules that the chapter names, then those whose source cites the recording."""
    named = [rules[each] for each in section.rules]
    citing = [rule for rule in rules.values() if section.number in cited(rule)]
    return named + [rule for rule in citing if rule not in named]


def cited(rule: Rule) -> set[int]:
    """Return the recordings that the source of a rule cites; "[60] to [92]" cites all between."""
    found = set(rule.recordings)
    for first, last in RANGE.findall(rule.source):
        found.update(range(int(first), int(last) + 1))
    return found


def _rules(rules: list[Rule], facts: Facts, page: Path) -> str:
    if not rules:
        return ""
    return "**Rules it shows**\n\n" + "".join(_rule(rule, facts, page) for rule in rules)


def _repeated(rules: list[Rule], page: Path) -> str:
    links = ", ".join(rule_link(rule, page) for rule in rules)
    return f"Rules of earlier dialogues that it shows again: {links}.\n" if links else ""


def _rule(rule: Rule, facts: Facts, page: Path) -> str:
    places = code_links(facts.code.get(rule.id, []), page)
    tests = links_to_tests(facts.tests.get(rule.id, []), page)
    lines = [f"- {rule_link(rule, page)}: {rule.text}\n"]
    if places:
        lines.append(f"  - code: {places}\n")
    if tests:
        lines.append(f"  - tests: {tests}\n")
    return "".join(lines)
