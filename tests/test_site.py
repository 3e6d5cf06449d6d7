"""The documentation as a site: links and headings, navigation, reference and spelling.

`make docs` builds it; these tests check in seconds what usually breaks.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

from docs.site import reference, stage
from docs.site.__main__ import MORE, check, configuration, navigation
from docs.site.parameters import convert
from jetstream import KeyValue
from tests.core import ROOT

PAGES = stage.places()


def test_links_lead_to_files_and_headings():
    assert stage.dead_links(PAGES) == []


def test_every_page_is_in_the_navigation_once():
    lines = navigation(PAGES, [("reference/x.md", "X")])
    listed = [place for line in lines for place in re.findall(r'= "(\S+\.md)"', line)]
    assert sorted(listed) == sorted({*map(str, PAGES.values()), "reference/x.md"})
    assert {place for _, place in MORE} <= set(listed)


def test_the_configuration_is_valid(tmp_path):
    toml = pytest.importorskip("tomllib", reason="needs Python 3.11")
    made = toml.loads(configuration(PAGES, reference.write(tmp_path)))
    assert made["project"]["nav"][0] == {"Home": "index.md"}
    assert made["project"]["extra"]["social"][0]["link"] == stage.address()
    for page in tmp_path.glob("*.md"):
        assert page.read_text(encoding="utf-8").count("::: ") >= 2


def test_every_public_name_is_in_the_reference():
    assert reference.missing() == set()


def test_spelling():
    command = [sys.executable, "-m", "codespell_lib", *map(str, PAGES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


SOURCE = "https://example.com/p"
CONVERTED = [
    ("[a](kv.md#b)", "[a](kv.md#b)"),
    ("[a](../CONTRIBUTING.md)", "[a](contributing.md)"),
    ("[a](../spec_notes/wire.md#b)", "[a](rules/wire.md#b)"),
    ("[a](../natsproto/client.py)", "[a](https://example.com/p/blob/main/natsproto/client.py)"),
    ("[a](../examples)", "[a](https://example.com/p/tree/main/examples)"),
    ("![a](explorer.png)", "![a](explorer.png)"),
    ("[a](https://nats.io) [b](#c)", "[a](https://nats.io) [b](#c)"),
    ("```python a/b.py\n[x](y.md)\n```", '```python title="a/b.py"\n[x](y.md)\n```'),
    ("```\nx\n```", "```text\nx\n```"),
    ("- a\n  - b", "- a\n    - b"),
]


@pytest.mark.parametrize(("text", "result"), CONVERTED)
def test_pages_are_converted(text, result, tmp_path, monkeypatch):
    page = ROOT / "docs" / "kv.md"
    monkeypatch.setattr(type(page), "read_text", lambda self, encoding: text)
    assert stage.convert(page, PAGES[page], PAGES, SOURCE) == result


def test_dead_links_are_found(tmp_path, monkeypatch):
    page = ROOT / "docs" / "kv.md"
    text = "# One\n[a](none.md) [b](#two) [c](#one)\n"
    monkeypatch.setattr(type(page), "read_text", lambda self, encoding: text)
    found = stage.dead_links({page: PAGES[page]})
    assert [each.partition(": ")[2] for each in found] == [
        f"no file {ROOT / 'docs' / 'none.md'}",
        "no heading kv.md#two",
    ]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<a href="b.html">b</a><p id="x">', "a.html: no file b.html"),
        ('<a href="#y">y</a><p id="x">', "a.html: no anchor #y"),
        ('<script src="https://cdn.example/x.js">', "a.html: loads https://cdn.example/x.js"),
        ('<a href="#x">x</a><p id="x"><a href="https://nats.io">', ""),
    ],
)
def test_built_pages_are_checked(html, found, tmp_path):
    (tmp_path / "a.html").write_text(html)
    problems = check(tmp_path)
    assert problems[0].startswith(found) if found else problems == [], problems


def test_parameters_become_a_list():
    text = convert(inspect.getdoc(KeyValue.watch) or "")
    assert "\n- `meta_only`: leave out the values\n" in text
    assert "\n- `resume_from_revision`: start with this revision" in text


@pytest.mark.parametrize("text", ["One sentence.", "Raises X if\nthe y is z.", "a b\nc  d"])
def test_other_paragraphs_are_kept(text):
    assert convert(text) == text
