"""The documentation is correct: its code runs, its quotes match, and its tables are complete.

A block of Python on a page runs as it stands, against a server of these tests. With `await` outside
of functions it runs under asyncio and has a `client`. A block that names a file is a quote from it:

    ```python examples/gevent_adapter.py
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import runpy
from typing import TYPE_CHECKING, NamedTuple

import pytest

from jetstream.blocking import JetStream
from natsproto import errors, events
from natsproto.adapters.asyncio import connect
from natsproto.adapters.blocking import connect as blocking_connect
from natsproto.testing import Server
from tests.core import ROOT, name

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 60.0  # for an example, in seconds
USUAL = "nats://127.0.0.1:4222"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
FENCE = re.compile(r"^```python(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    page: Path
    line: int
    source: str  # the file that it is a quote from, "" if it is none
    code: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start(2)), found[1] or "", found[2])
        for found in FENCE.finditer(text)
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
# tests/spark runs these, in its Spark session.
IN_SPARK = [each for each in BLOCKS if not each.source and "pyspark" in each.code]


def label(block: Block) -> str:
    return f"{name(block.page)}:{block.line + 1}"


@pytest.fixture(scope="module")
def shared():
    with Server(jetstream=True) as server:
        yield server


@pytest.fixture
def server(shared):
    """A server without streams: examples need not delete theirs."""
    yield shared
    with blocking_connect(shared.url) as client:
        js = JetStream(client)
        for each in js.stream_names():
            js.delete_stream(each)


RUN_HERE = [each for each in BLOCKS if not each.source and each not in IN_SPARK]


@pytest.mark.parametrize("block", RUN_HERE, ids=label)
def test_code_runs(block, server):
    # Empty lines in front, so that a traceback shows the line of the page.
    text = "\n" * block.line + block.code.replace(USUAL, server.url)
    code = compile(text, name(block.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if not code.co_flags & inspect.CO_COROUTINE:
        exec(code, {"__name__": "docs"})
        return

    async def main() -> None:
        async with connect(server.url) as client:
            await eval(code, {"__name__": "docs", "asyncio": asyncio, "client": client})

    asyncio.run(asyncio.wait_for(main(), LONGEST))


OUTPUT = re.compile(r"^```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_tutorial_can_be_followed_on_one_server(server, capsys):
    """A reader runs the steps one after the other, perhaps twice, and sees what the page shows."""
    page = ROOT / "docs" / "tutorial.md"
    steps = blocks_of(page)
    shown = OUTPUT.findall(page.read_text(encoding="utf-8"))
    printed: list[str] = []
    for step in [*steps[:4], *steps[2:4]]:
        exec(step.code.replace(USUAL, server.url), {"__name__": "docs"})
        printed.append(capsys.readouterr().out)
    assert printed == [*shown[:4], *shown[2:4]]


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.source], ids=label)
def test_quotes_are_quotes(block):
    assert block.code in (ROOT / block.source).read_text(encoding="utf-8")


def test_the_adapter_is_explained_to_the_last_line():
    source = "examples/gevent_adapter.py"
    rest = (ROOT / source).read_text(encoding="utf-8")
    for block in BLOCKS:
        if block.source == source:
            rest = rest.replace(block.code, "")
    assert not [line for line in rest.splitlines() if line.startswith((" ", "def", "class"))], rest


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    links = [link for link in links if link and "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_on_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in ROOT.glob("docs/*.md")} - {"index.md"}
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == pages


def test_every_example_is_listed():
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    listed = {link.partition("/")[0] for link in re.findall(r"\]\(([^)]+)\)", text)}
    folder = ROOT / "examples"
    found = {each.name for each in folder.iterdir() if each.suffix == ".py" or each.is_dir()}
    assert found - {"__pycache__", "__init__.py"} <= listed


def test_the_reference_of_fields_is_up_to_date():
    made = runpy.run_path(str(ROOT / "docs" / "fields.py"))
    page = ROOT / "docs" / "jetstream-fields.md"
    assert page.read_text(encoding="utf-8") == made["page"](), "run `python docs/fields.py`"


def test_the_table_of_options_is_up_to_date():
    made = runpy.run_path(str(ROOT / "docs" / "options.py"))
    page = ROOT / "docs" / "client.md"
    assert page.read_text(encoding="utf-8") == made["page"](), "run `python docs/options.py`"


def test_the_table_of_options_of_spark_is_up_to_date():
    pytest.importorskip("pyspark", reason="needs the extra spark")
    made = runpy.run_path(str(ROOT / "docs" / "spark_options.py"))
    page = ROOT / "docs" / "spark.md"
    assert page.read_text(encoding="utf-8") == made["page"](), "run `python docs/spark_options.py`"


@pytest.mark.parametrize(
    ("module", "root", "others"),
    [
        (errors, errors.NatsError, {"NatsError", "LocalError", "RemoteError"}),
        (events, events.Event, {"Event"}),
    ],
)
def test_tables_name_every_class_once(module, root, others):
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    classes = [each for each in vars(module).values() if inspect.isclass(each)]
    names = {each.__name__ for each in classes if issubclass(each, root)} - others
    rows = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(row for row in rows if row in names) == sorted(names)
