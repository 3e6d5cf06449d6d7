"""`python -m natsproto.testing` and `python -m jetstream.testing`."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from jetstream.testing import CHECKS as JETSTREAM
from natsproto.adapters import asyncio as adapter
from natsproto.testing import CHECKS, AsyncioRunner, command
from tests.conformance.adapters import COMMANDS
from tests.core import ROOT

TRIO = "natsproto.adapters.trio:connect"
THREADS = "natsproto.adapters.threads:connect"
HERE = "tests.conformance.test_command"


def deaf(servers, **options):
    return adapter.connect(servers, **{**options, "no_echo": True})


class Entered(AsyncioRunner):
    """A runner that is a context manager, and refuses to run when it was not entered."""

    log: list[str] = []  # noqa: RUF012

    def __enter__(self):
        self.log.append("entered")
        return self

    def __exit__(self, *exc):
        self.log.append("left")

    def run(self, main, timeout):
        assert self.log[-1] == "entered"
        super().run(main, timeout)


def run(*argv, suite=CHECKS):
    return command.main("natsproto.testing", suite, list(argv))


def test_a_group_and_a_check(capsys):
    assert run("natsproto.adapters.asyncio:connect", "--group", "headers", "--only", "request") == 0
    lines = capsys.readouterr().out.splitlines()
    headers = [each for each in CHECKS.values() if each.group == "headers"]
    assert re.fullmatch(
        rf"{len(headers) + 1} checks of natsproto.adapters.asyncio:connect on nats-server \d.*",
        lines[0],
    )
    assert f"{'headers':20} {len(headers)} passed" in lines
    assert f"{'requests':20} 1 passed" in lines
    assert re.fullmatch(rf"{len(headers) + 1} passed in \d+ s", lines[-1])


def test_a_bad_adapter(capsys):
    names = ["--only=wildcards", "--only=publish_reaches_subscriber"]
    assert run(f"{HERE}:deaf", *names, "--verbose") == 1
    out = capsys.readouterr().out
    assert re.search(r"^passed  publish_reaches_subscriber \(\d\.\d\d s\)$", out, re.MULTILINE)
    assert re.search(r"^FAILED  wildcards \(", out, re.MULTILINE)
    assert f"FAILED  wildcards: {CHECKS['wildcards'].proves.splitlines()[0]}\nTraceback" in out
    assert re.search(r"^FAILED  wildcards: AssertionError: assert .", out, re.MULTILINE)
    assert re.search(r"^1 passed, 1 failed in \d+ s$", out, re.MULTILINE)


def test_the_first_failure(capsys):
    assert run(f"{HERE}:deaf", "--only", "wildcards", "--only", "unsubscribe_stops", "-x") == 1
    assert "\n1 failed in " in capsys.readouterr().out


def test_skipped_checks_have_a_reason(capsys):
    names = ["--only", "two_hundred_requests_in_flight", "--only", "request"]
    assert run("natsproto.adapters.blocking:connect", *names) == 0
    out = capsys.readouterr().out
    assert "\nskipped two_hundred_requests_in_flight: a client is for one thread at a time\n" in out
    assert "\n1 passed, 1 skipped in " in out


def test_patterns_and_quick():
    names = [check.name for check in command.select(CHECKS, [], ["tls_*"])]
    assert "tls_first" in names
    assert all(name.startswith("tls_") for name in names)
    everything = {**CHECKS, **JETSTREAM}
    assert command.select(everything, [], []) == list(everything.values())
    assert {each.slow for each in command.select(everything, [], [], quick=True)} == {False}


def test_the_list(capsys):
    assert run("--list", "--group", "tls") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tls  (natsproto.testing.checks.tls)"
    assert len(lines) == 1 + sum(each.group == "tls" for each in CHECKS.values())
    assert f"  tls_first: {CHECKS['tls_first'].proves.splitlines()[0]}" in lines


WRONG = [
    ([], "name the adapter to check"),
    (["natsproto.adapters.trio"], "'natsproto.adapters.trio' is not MODULE:NAME"),
    (["no_such_module:connect"], "cannot be imported: No module named 'no_such_module'"),
    (["natsproto.adapters.trio:connnect"], "cannot be imported: module .* has no attribute"),
    ([TRIO, "--group", "tsl"], "there is no group 'tsl'; there are auth, "),
    ([TRIO, "--only", "nonsense"], "there is no check 'nonsense'; --list shows all"),
    ([TRIO, "--runner", "curio"], "there is no runner 'curio'; there are asyncio, "),
    ([TRIO, "--runner", "builtins:list"], "is not a natsproto.testing.Runner: it has no shares_"),
    ([TRIO, "--server", "/no/such/server"], "no executable nats-server at '/no/such/server'"),
]


@pytest.mark.parametrize(("argv", "message"), WRONG)
def test_wrong_commands(capsys, argv, message):
    assert run(*argv) == 2
    told = capsys.readouterr().err
    assert told.startswith("python -m natsproto.testing: ")
    assert re.search(message, told)


def test_a_runner_without_its_library(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run("natsproto.adapters.asyncio:connect", "--runner", "uvloop") == 2
    assert "the runner uvloop needs a library" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (TRIO, "trio"),
        (THREADS, "threads"),
        ("natsproto.adapters.anyio:connect", "anyio"),
        ("natsproto.adapters.poll:connect", "poll"),
        ("my_adapters.trio:connect", "asyncio"),
        ("natsproto.adapters.driver:connect", "asyncio"),
    ],
)
def test_the_runner_of_an_adapter(where, name):
    assert command.default_runner(where) == name


def test_a_runner_of_ones_own_is_entered():
    runner = f"{HERE}:Entered"
    argv = ["natsproto.adapters.asyncio:connect", "--runner", runner, "--only", "request"]
    module = sys.modules.get(HERE) or __import__(HERE, fromlist=["Entered"])
    module.Entered.log.clear()
    assert run(*argv) == 0
    assert module.Entered.log == ["entered", "left"]


@pytest.mark.parametrize(
    ("package", "checks"), [("natsproto", CHECKS), ("jetstream", {**CHECKS, **JETSTREAM})]
)
def test_the_modules(package, checks):
    """Each has the list of its package; a core without jetstream does not import it."""
    code = (
        f"import runpy, sys; sys.argv = ['x', '--list']\n"
        f"try: runpy.run_module('{package}.testing', run_name='__main__')\n"
        "finally: sys.stderr.write(str('jetstream' in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert sum(line.startswith("  ") for line in done.stdout.splitlines()) == len(checks)
    assert done.stderr == str(package == "jetstream")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_adapters_of_make_adapters_can_be_imported(name):
    """In another process: gevent and Twisted bring loops that this one should not have."""
    pytest.importorskip({"poll": "asyncio"}.get(name, name.partition("-")[0]))
    where, *options = [each.partition("=")[2] or each for each in COMMANDS[name]]
    runner = options[-1] if options else name
    code = (
        "from natsproto.testing.command import find, make_runner\n"
        f"find({where!r}); make_runner({runner!r})"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
