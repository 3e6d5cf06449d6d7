"""The conformance suite: lists of checks, and functions that run them on an adapter."""

from __future__ import annotations

import importlib.util
import logging
import time
from typing import TYPE_CHECKING, Any

from .context import Context, Servers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
    from typing import Protocol, TypeAlias

    from .runner import Connect, Runner

    Function: TypeAlias = Callable[[Context], Coroutine[Any, Any, None]]

    class Registrar(Protocol):
        """The type of the decorator `check`: see Checks.check."""

        def __call__(
            self,
            *,
            since: tuple[int, ...] = (),
            needs: tuple[str, ...] = (),
            shares: bool = False,
            slow: bool = False,
            longest: float = ...,
        ) -> Callable[[Function], Function]:
            """Return a decorator that adds a function to a list of checks."""
            ...


#: How long a check may take, unless it says otherwise.
LONGEST = 60.0


class ChecksFailed(AssertionError):
    """An adapter did not pass; `report` has the details."""

    def __init__(self, report: Report) -> None:
        lines = [f"  {name}: {type(error).__name__}: {error}" for name, error in report.failed]
        total = len(report.passed) + len(report.failed)
        super().__init__("\n".join([f"{len(lines)} of {total} checks failed", *lines]))
        self.report = report


class Report:
    """The names of the checks that passed, failed (with the error) or were skipped (and why)."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: list[tuple[str, BaseException]] = []
        self.skipped: list[tuple[str, str]] = []

    def __repr__(self) -> str:
        return (
            f"<Report: {len(self.passed)} passed, {len(self.failed)} failed,"
            f" {len(self.skipped)} skipped>"
        )


class Outcome:
    """The end of one check. It passed if there is neither an error nor a reason to skip it."""

    def __init__(self, check: Check, error: Exception | None, reason: str, took: float) -> None:
        self.check = check
        self.error = error
        self.reason = reason
        #: Seconds.
        self.took = took


class Check:
    """A check: a coroutine function whose docstring says what it proves.

    since: the server version that the check needs
    needs: the modules that the check needs
    shares: whether several threads of control use one client at the same time
    slow: whether the check mostly waits for servers
    longest: how long the check may take, in seconds
    """

    def __init__(
        self,
        function: Function,
        since: tuple[int, ...],
        needs: tuple[str, ...],
        shares: bool,
        slow: bool,
        longest: float,
    ) -> None:
        self.function = function
        self.name: str = function.__name__.removeprefix("check_")
        #: The name of its module.
        self.group: str = function.__module__.rpartition(".")[2]
        self.since = since
        self.needs = needs
        self.shares = shares
        self.slow = slow
        self.longest = longest

    @property
    def proves(self) -> str:
        """Return the docstring of the function."""
        return self.function.__doc__ or ""

    def reason_to_skip(self, runner: Runner, version: tuple[int, ...]) -> str:
        """Return why the check cannot run here; "" if it can."""
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if missing:
            return f"{missing[0]} is not installed"
        if version < self.since:
            return f"needs nats-server {'.'.join(map(str, self.since))}"
        if self.shares and not runner.shares_clients:
            return "a client is for one thread at a time"
        return ""

    def run(self, connect: Connect, runner: Runner, servers: Servers) -> None:
        """Run the check; raise if it fails."""
        if not __debug__:
            raise RuntimeError("checks consist of assert statements: run Python without -O")

        async def main() -> None:
            context = Context(connect, runner, servers)
            failure: Exception | None = None
            try:
                await self.function(context)
            except Exception as error:
                failure = error  # clients are closed as after any other check
            try:
                await context.close()
            except Exception as error:
                raise (failure or error) from (error if failure else None)
            if failure is not None:
                raise failure

        runner.run(main, self.longest)

    def __repr__(self) -> str:
        return f"<Check {self.name}>"


class Checks(dict[str, Check]):
    """Checks by name, without the `check_` of their functions."""

    def check(
        self,
        *,
        since: tuple[int, ...] = (),
        needs: tuple[str, ...] = (),
        shares: bool = False,
        slow: bool = False,
        longest: float = LONGEST,
    ) -> Callable[[Function], Function]:
        """Add the decorated function to this list; the arguments are those of Check."""

        def register(function: Function) -> Function:
            one = Check(function, since, needs, shares, slow, longest)
            assert one.name not in self, one
            self[one.name] = one
            return function

        return register


#: The checks of the core; those of JetStream are in jetstream.testing.
CHECKS = Checks()
check: Registrar = CHECKS.check


def check_adapter(
    connect: Connect,
    runner: Runner,
    *,
    checks: Iterable[str] | None = None,
    suite: Mapping[str, Check] = CHECKS,
    server_binary: str | None = None,
) -> Report:
    """Run the checks on an adapter; raise ChecksFailed if any of them fails.

        check_adapter(my_adapter.connect, AsyncioRunner())

    connect: the function that an adapter offers its users. It takes server URLs and the keywords of
        natsproto.options.Options, and returns an asynchronous context manager (an ordinary one for
        BlockingRunner) that returns a client.
    checks: the names of the checks to run; by default all
    suite: the list that the checks are taken from. The default has those of the core;
        `jetstream.testing.check_adapter` adds those of JetStream.
    """
    names = list(suite) if checks is None else list(checks)
    strangers = [name for name in names if name not in suite]
    if strangers:
        raise ValueError(f"there is no check {strangers[0]!r}")
    report = Report()
    with Servers(server_binary) as servers:
        for outcome in run_checks([suite[name] for name in names], connect, runner, servers):
            name = outcome.check.name
            if outcome.error is not None:
                report.failed.append((name, outcome.error))
            elif outcome.reason:
                report.skipped.append((name, outcome.reason))
            else:
                report.passed.append(name)
    if report.failed:
        raise ChecksFailed(report)
    return report


def run_checks(
    checks: Iterable[Check], connect: Connect, runner: Runner, servers: Servers
) -> Iterator[Outcome]:
    """Run the checks one after the other, and yield the outcome of each."""
    # Checks provoke what is logged. Without a handler, Python would write it to stderr.
    logging.getLogger("natsproto").addHandler(logging.NullHandler())
    for one in checks:
        reason = one.reason_to_skip(runner, servers.version)
        begin = time.monotonic()
        failure: Exception | None = None
        if not reason:
            try:
                one.run(connect, runner, servers)
            except Exception as error:
                failure = error
        yield Outcome(one, failure, reason, time.monotonic() - begin)
