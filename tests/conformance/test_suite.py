"""The conformance suite itself: it runs on any adapter, and finds broken ones."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading

import pytest

from jetstream import testing as jetstream_testing
from natsproto.adapters import asyncio as adapter
from natsproto.adapters import poll, threads
from natsproto.testing import (
    CHECKS,
    AsyncioRunner,
    BlockingRunner,
    Check,
    CheckHung,
    ChecksFailed,
    Servers,
    check_adapter,
)
from natsproto.testing.command import RUNNERS
from natsproto.testing.context import raises
from tests.core import ROOT

EVERY = [*CHECKS.values(), *jetstream_testing.CHECKS.values()]


def test_the_number_of_checks():
    assert len(CHECKS) >= 150
    assert len(jetstream_testing.CHECKS) >= 400


def test_no_check_of_jetstream_has_the_name_of_another():
    assert CHECKS.keys().isdisjoint(jetstream_testing.CHECKS)


def test_each_package_has_the_checks_of_its_own_subject():
    for package, checks in [("natsproto", CHECKS), ("jetstream", jetstream_testing.CHECKS)]:
        home = f"{package}.testing.checks."
        assert all(one.function.__module__ == home + one.group for one in checks.values())


@pytest.mark.parametrize("check", EVERY, ids=lambda check: check.name)
def test_checks_have_docstrings(check):
    assert check.proves.endswith(".")
    assert not check.name.startswith("check_")


# Not the adapters' own libraries, nor those of single checks, nor what PyPy lacks.
ABSENT = ["anyio", "cryptography", "nacl", "tracemalloc", "trio", "trustme", "uvloop", "wsproto"]


@pytest.mark.parametrize("package", ["natsproto", "jetstream"])
def test_the_suite_is_imported_without_the_libraries_of_single_checks(package):
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({ABSENT}))\n"
        f"import {package}.testing.checks, natsproto.testing.command"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def test_a_good_adapter_passes():
    names = ["publish_reaches_subscriber", "request", "reconnect_after_kill"]
    report = check_adapter(adapter.connect, AsyncioRunner(), checks=names)
    assert report.passed == names
    assert repr(report) == "<Report: 3 passed, 0 failed, 0 skipped>"


def test_a_bad_adapter_fails():
    def deaf(servers, **options):
        return adapter.connect(servers, **{**options, "no_echo": True})

    names = ["wildcards", "publish_reaches_subscriber", "unsubscribe_stops"]
    with pytest.raises(ChecksFailed, match=r"(?s)^2 of 3 checks failed\n  wild.*unsub") as caught:
        check_adapter(deaf, AsyncioRunner(), checks=names)
    assert caught.value.report.passed == ["publish_reaches_subscriber"]


def test_checks_that_cannot_run_are_skipped(monkeypatch):
    monkeypatch.setattr(CHECKS["empty_payload"], "since", (99, 0, 0))
    monkeypatch.setattr(CHECKS["wildcards"], "needs", ("no_such_module",))
    names = ["empty_payload", "wildcards", "two_hundred_requests_in_flight"]
    runner = BlockingRunner(shares_clients=False)
    assert check_adapter(threads.connect, runner, checks=names).skipped == [
        ("empty_payload", "needs nats-server 99.0.0"),
        ("wildcards", "no_such_module is not installed"),
        ("two_hundred_requests_in_flight", "a client is for one thread at a time"),
    ]


def test_unknown_checks():
    for run in (check_adapter, jetstream_testing.check_adapter):
        with pytest.raises(ValueError, match="there is no check 'nonsense'"):
            run(adapter.connect, AsyncioRunner(), checks=["nonsense"])


NAMES_OF_BOTH = ["request", "js_publish"]


def test_the_checks_of_the_core_are_the_default():
    with pytest.raises(ValueError, match="there is no check 'js_publish'"):
        check_adapter(adapter.connect, AsyncioRunner(), checks=NAMES_OF_BOTH)


def test_checks_of_other_lists():
    suite = {**CHECKS, **jetstream_testing.CHECKS}
    report = check_adapter(adapter.connect, AsyncioRunner(), checks=NAMES_OF_BOTH, suite=suite)
    assert report.passed == NAMES_OF_BOTH
    one = {"request": CHECKS["request"]}
    assert check_adapter(adapter.connect, AsyncioRunner(), suite=one).passed == ["request"]


def test_the_adapter_check_of_jetstream_has_both_lists():
    runner = BlockingRunner(shares_clients=True)
    report = jetstream_testing.check_adapter(threads.connect, runner, checks=NAMES_OF_BOTH)
    assert report.passed == NAMES_OF_BOTH


def test_the_adapter_check_of_jetstream_runs_all_by_default(monkeypatch):
    for one in EVERY:
        monkeypatch.setattr(one, "since", (99, 0, 0))
    report = jetstream_testing.check_adapter(adapter.connect, AsyncioRunner())
    assert [name for name, _ in report.skipped] == [*CHECKS, *jetstream_testing.CHECKS]


def test_a_check_that_hangs():
    released = threading.Event()

    async def hang():
        await asyncio.Event().wait()

    async def hang_in_a_call():
        released.wait()

    with pytest.raises(CheckHung):
        AsyncioRunner().run(hang, timeout=0.05)
    with pytest.raises(CheckHung):
        BlockingRunner(shares_clients=True).run(hang_in_a_call, timeout=0.05)
    released.set()


def test_a_check_that_hangs_on_trio():
    trio = pytest.importorskip("trio")
    from natsproto.testing import TrioRunner

    async def fail():
        raise ValueError("not in a group")

    with pytest.raises(CheckHung):
        TrioRunner().run(trio.sleep_forever, timeout=0.05)
    with pytest.raises(ValueError, match="not in a group"):
        TrioRunner().run(fail, timeout=1)


@pytest.mark.parametrize("name", ["anyio", "anyio-trio", "poll"])
def test_a_check_that_hangs_on_other_loops(name):
    pytest.importorskip({"poll": "asyncio"}.get(name, "anyio"))
    runner = RUNNERS[name]()

    async def hang():
        await runner.start(forever).result()

    async def forever():
        if name == "poll":
            await poll.sleep(3600)
        else:
            import anyio

            await anyio.sleep_forever()

    async def fail():
        raise ValueError("not in a group")

    with pytest.raises(CheckHung):
        runner.run(hang, timeout=0.05)
    with pytest.raises(ValueError, match="not in a group"):
        runner.run(fail, timeout=1)


def test_unretrieved_exceptions():
    async def main():
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="division by zero"):
        AsyncioRunner().run(main, timeout=1)


def test_tasks_return_results_and_errors():
    async def work(result):
        if isinstance(result, Exception):
            raise result
        return result

    async def main():
        assert await runner.start(lambda: work(1)).result() == 1
        with pytest.raises(ValueError, match="2"):
            await runner.start(lambda: work(ValueError("2"))).result()

    for name in ("asyncio", "blocking", "poll"):
        runner = RUNNERS[name]()
        runner.run(main, timeout=5)


@pytest.mark.parametrize("fails", [False, True])
def test_deferred_work_runs_while_clients_are_connected(fails):
    states = []

    async def function(ctx):
        client = await ctx.client()

        async def work():
            await client.flush()
            states.append(client.state)

        ctx.defer(work)
        assert not fails

    check = Check(function, (), (), shares=False, slow=False, longest=30.0)
    with Servers() as servers:
        outcome = pytest.raises(AssertionError) if fails else contextlib.nullcontext()
        with outcome:
            check.run(adapter.connect, AsyncioRunner(), servers)
    assert states == ["CONNECTED"]


def test_a_check_has_its_own_longest_time():
    async def check_hangs(ctx):
        await asyncio.Event().wait()

    check = Check(check_hangs, (), (), shares=False, slow=False, longest=0.05)
    with Servers() as servers, pytest.raises(CheckHung, match=r"0\.05 s"):
        check.run(adapter.connect, AsyncioRunner(), servers)


def test_raises():
    from natsproto.errors import LocalError, RemoteError

    with raises(LocalError) as caught:
        raise LocalError("here")
    assert str(caught.error) == "here"
    with pytest.raises(AssertionError, match="LocalError was not raised"), raises(LocalError):
        pass
    with pytest.raises(RemoteError), raises(LocalError):
        raise RemoteError("another")
    with pytest.raises(AssertionError, match="not within 0"), raises(LocalError, within=0):
        raise LocalError("late")


def test_checks_show_their_name():
    assert repr(CHECKS["empty_payload"]) == "<Check empty_payload>"
    assert isinstance(CHECKS["empty_payload"], Check)
