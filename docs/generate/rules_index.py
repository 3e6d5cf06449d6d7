"""The index of rules, docs/rules.md: rule, source, code, test.

Code and tests are given by file and name, not by line: a line number would be wrong after the next
edit above it. Search the file for the id of the rule.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from docs.generate.pages import code_links, links_to_tests, rule_link
from tests.rules import NOTES, ROOT

if TYPE_CHECKING:
    from tests.rules import Place, Rule

PAGE = ROOT / "docs" / "rules.md"
HEAD = Path(__file__).with_name("texts") / "rules.md"


def render(
    rules: dict[str, Rule], code: dict[str, list[Place]], tests: dict[str, list[str]]
) -> str:
    """Return the text of the page."""
    own = sum(rule.ours for rule in rules.values())
    parts = [HEAD.read_text(encoding="utf-8").format(count=len(rules), own=own)]
    for page in sorted({rule.page for rule in rules.values()}):
        title = (NOTES / page).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        parts.append(f"\n## {title}\n\n| rule | source | code | test |\n|---|---|---|---|\n")
        parts += [
            f"| {rule_link(rule, PAGE)} | {escape(rule.source)} "
            f"| {code_links(code.get(rule.id, []), PAGE) or '-'} "
            f"| {links_to_tests(tests.get(rule.id, []), PAGE) or '-'} |\n"
            for rule in rules.values()
            if rule.page == page
        ]
    return "".join(parts)


def escape(text: str) -> str:
    """Return text that fits in a cell of a table."""
    return text.replace("|", "\\|")
