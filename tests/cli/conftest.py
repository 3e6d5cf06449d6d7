"""Commands in this process, on a server with JetStream."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from jetstream.tools.cli.main import main
from natsproto.testing import Server
from tests.cli.programs import Done

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Terminal(io.TextIOWrapper):
    """A terminal on which the input is typed."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="session")
def js_server() -> Iterator[Server]:
    with Server(jetstream=True) as server:
        yield server


@pytest.fixture
def run(
    js_server: Server,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Done]:
    """Run a command of `natsproto` to its end: run("stream", "ls")."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("NATS_URL", js_server.url)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*args: str, stdin: bytes = b"", terminal: bool = False) -> Done:
        given = io.TextIOWrapper(io.BytesIO(stdin))
        if terminal:
            given = Terminal(io.BytesIO(stdin))
        monkeypatch.setattr(sys, "stdin", given)
        capfd.readouterr()
        try:
            code = main(list(args))
        except SystemExit as exit:  # argparse
            code = int(str(exit.code))
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return run
