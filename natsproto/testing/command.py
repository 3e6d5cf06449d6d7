"""The command line of `python -m natsproto.testing` and `python -m jetstream.testing`.

Both run the checks of their package on any adapter; this module knows neither list.
"""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import importlib
import sys
import time
import traceback
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

from .context import Servers
from .runner import AsyncioRunner, BlockingRunner, TrioRunner
from .server import ServerFailed, ServerNotFound
from .suite import run_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .runner import Connect, Runner
    from .suite import Check, Outcome

PASSED, FAILED, WRONG = 0, 1, 2
EPILOG = """\
The exit code is 0 if no check failed, 1 if one did, and 2 if the command is wrong or there is no
nats-server."""
ADAPTERS = "natsproto.adapters."
MEMBERS = ("shares_clients", "run", "start", "open")


class Wrong(Exception):
    """The command cannot be carried out as it was given."""


def _uvloop() -> Runner:
    return AsyncioRunner(importlib.import_module("uvloop").new_event_loop)


def _anyio(backend: str) -> Runner:
    from .anyio_runner import AnyioRunner

    return AnyioRunner(backend)


def _poll() -> Runner:
    from .poll_runner import PollRunner

    return PollRunner()


#: The runners that need no module of the caller, by name.
RUNNERS: dict[str, Callable[[], Runner]] = {
    "asyncio": lambda: AsyncioRunner(asyncio.new_event_loop),
    "uvloop": _uvloop,
    "trio": TrioRunner,
    "anyio": lambda: _anyio("asyncio"),
    "anyio-trio": lambda: _anyio("trio"),
    "blocking": lambda: BlockingRunner(shares_clients=False),
    "threads": lambda: BlockingRunner(shares_clients=True),
    "poll": _poll,
}


def main(package: str, suite: Mapping[str, Check], argv: list[str] | None = None) -> int:
    """Run the command of this package on a list of checks, and return its exit code."""
    parser = _parser(package)
    arguments = parser.parse_args(argv)
    try:
        chosen = select(suite, arguments.group, arguments.only, arguments.quick)
        if arguments.list:
            _show_list(chosen)
            return PASSED
        if not arguments.adapter:
            raise Wrong("name the adapter to check, for example natsproto.adapters.trio:connect")
        connect = find(arguments.adapter)
        with make_runner(arguments.runner or default_runner(arguments.adapter)) as runner:
            return _run(chosen, connect, runner, arguments)
    except (Wrong, ServerNotFound) as error:
        sys.stderr.write(f"{parser.prog}: {error}\n")
        return WRONG


def _parser(package: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}",
        description="Check an adapter against real servers.",
        epilog=EPILOG,
    )
    add = parser.add_argument
    add("adapter", nargs="?", metavar="MODULE:connect", help="the function that connects")
    names = ", ".join(RUNNERS)
    add("--runner", help=f"{names}, or MODULE:Runner; by default that of the adapter's name")
    add("--group", action="append", default=[], help="run this group; may be repeated")
    add("--only", action="append", default=[], metavar="NAME", help="run this check, or 'tls_*'")
    add("--quick", action="store_true", help="leave out the checks that mostly wait for servers")
    add("--list", action="store_true", help="list the groups and checks instead of running them")
    add("--server", metavar="PATH", help="the nats-server to use")
    add("-x", "--exitfirst", action="store_true", help="stop after the first failure")
    add("-v", "--verbose", action="store_true", help="write a line for every check")
    return parser


def select(
    suite: Mapping[str, Check], groups: list[str], names: list[str], quick: bool = False
) -> list[Check]:
    """Return the checks of these groups, and those with these names; all if neither is given."""
    known = sorted({check.group for check in suite.values()})
    for group in groups:
        if group not in known:
            raise Wrong(f"there is no group {group!r}; there are {', '.join(known)}")
    for name in names:
        if not fnmatch.filter(suite, name):
            raise Wrong(f"there is no check {name!r}; --list shows all")
    return [
        check
        for check in suite.values()
        if not (quick and check.slow)
        and (
            not (groups or names)
            or check.group in groups
            or any(fnmatch.fnmatch(check.name, name) for name in names)
        )
    ]


def find(where: str) -> Any:
    """Return the object at `MODULE:NAME`."""
    module, _, name = where.partition(":")
    if not module or not name:
        raise Wrong(f"{where!r} is not MODULE:NAME")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Wrong(f"{where} cannot be imported: {error}") from error


def default_runner(adapter: str) -> str:
    """Return the name of the runner for an adapter; asyncio for one that is not of natsproto."""
    module = adapter.partition(":")[0]
    name = module[len(ADAPTERS) :] if module.startswith(ADAPTERS) else ""
    return name if name in RUNNERS else "asyncio"


def make_runner(where: str) -> AbstractContextManager[Runner]:
    """Return a ready-made runner, or that of a module; as a context manager, which it may be."""
    make = RUNNERS.get(where)
    if make is None and ":" not in where:
        raise Wrong(f"there is no runner {where!r}; there are {', '.join(RUNNERS)}, MODULE:Runner")
    try:
        runner: Any = find(where)() if make is None else make()
    except ImportError as error:
        raise Wrong(f"the runner {where} needs a library: {error}") from error
    missing = [name for name in MEMBERS if not hasattr(runner, name)]
    if missing:
        raise Wrong(f"{where} is not a natsproto.testing.Runner: it has no {', '.join(missing)}")
    if hasattr(runner, "__enter__"):
        return cast("AbstractContextManager[Runner]", runner)
    return nullcontext(runner)


def _show_list(checks: Iterable[Check]) -> None:
    group = ""
    for check in checks:
        module = check.function.__module__
        if module != group:
            group = module
            _write(f"{check.group}  ({module})")
        _write(f"  {check.name}: {check.proves.splitlines()[0]}")


def _run(
    checks: list[Check], connect: Connect, runner: Runner, arguments: argparse.Namespace
) -> int:
    printer = Printer(arguments.verbose)
    with Servers(arguments.server) as servers:
        try:
            version = ".".join(map(str, servers.version))
        except ServerFailed as error:
            raise Wrong(str(error)) from error
        noun = "check" if len(checks) == 1 else "checks"
        _write(f"{len(checks)} {noun} of {arguments.adapter} on nats-server {version}")
        for outcome in run_checks(checks, connect, runner, servers):
            printer.add(outcome)
            if outcome.error is not None and arguments.exitfirst:
                break
    return printer.end()


class Printer:
    """Writes a line for each group or each check, and the failures."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._group = ""
        self._outcomes: list[Outcome] = []  # of the present group
        self._all: list[Outcome] = []
        self._begin = time.monotonic()

    def add(self, outcome: Outcome) -> None:
        """Write the result of this check, and that of its group if it is complete."""
        check = outcome.check
        if check.function.__module__ != self._group:
            self._end_group()
            self._group = check.function.__module__
        self._outcomes.append(outcome)
        self._all.append(outcome)
        if self._verbose:
            reason = f": {outcome.reason}" if outcome.reason else ""
            _write(f"{_verdict(outcome):8}{check.name} ({outcome.took:.2f} s){reason}")
        if outcome.error is not None:
            _write(f"FAILED  {check.name}: {check.proves.splitlines()[0]}")
            error = outcome.error
            _write("".join(traceback.format_exception(type(error), error, error.__traceback__)))

    def _end_group(self) -> None:
        if self._outcomes and not self._verbose:
            _write(f"{self._outcomes[0].check.group:20} {_counts(self._outcomes)}")
        self._outcomes = []

    def end(self) -> int:
        """Write the summary, and return the exit code."""
        self._end_group()
        skipped = [each for each in self._all if each.reason]
        for outcome in skipped:
            _write(f"skipped {outcome.check.name}: {outcome.reason}")
        failed = [(each.check.name, each.error) for each in self._all if each.error is not None]
        for name, error in failed:
            _write(f"FAILED  {name}: {_reason(error)}")
        _write(f"{_counts(self._all)} in {time.monotonic() - self._begin:.0f} s")
        return FAILED if failed else PASSED


def _verdict(outcome: Outcome) -> str:
    if outcome.error is not None:
        return "FAILED"
    return "skipped" if outcome.reason else "passed"


def _reason(error: Exception) -> str:
    """Return the error in a line; for an assertion without a message, the statement."""
    frames = traceback.extract_tb(error.__traceback__)
    statement = frames[-1].line if frames else ""
    return f"{type(error).__name__}: {str(error) or statement}"


def _counts(outcomes: list[Outcome]) -> str:
    """Return, for example, `12 passed, 1 skipped`."""
    verdicts = [_verdict(each) for each in outcomes]
    found = [(verdicts.count(each), each.lower()) for each in ("passed", "FAILED", "skipped")]
    return ", ".join(f"{count} {what}" for count, what in found if count) or "no checks"


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
