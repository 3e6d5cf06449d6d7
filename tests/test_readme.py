"""Every Python block of the README runs."""

from __future__ import annotations

import re

import pytest

from tests.core import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = list(re.finditer(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE))


def line_of(block):
    return README.count("\n", 0, block.start(1))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line-{line_of(block) + 1}")
def test_block_runs(block):
    # Empty lines in front, so that a traceback shows the line of the README.
    code = compile("\n" * line_of(block) + block[1], "README.md", "exec")
    exec(code, {"__name__": "readme"})


def test_readme_has_blocks():
    assert BLOCKS
