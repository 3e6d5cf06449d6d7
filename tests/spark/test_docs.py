"""The code about Spark in the documentation runs, block by block, in the session of these tests."""

from __future__ import annotations

import pytest

from natsproto.testing import Server
from tests.test_docs import IN_SPARK, USUAL, label


@pytest.fixture(scope="module")
def server():
    """One of its own: the streams of the page are to be there for later blocks alone."""
    with Server(jetstream=True) as server:
        yield server


@pytest.mark.parametrize("block", IN_SPARK, ids=label)
def test_code_runs(block, spark, server):
    text = "\n" * block.line + block.code.replace(USUAL, server.url)
    exec(compile(text, str(block.page), "exec"), {"__name__": "docs"})
