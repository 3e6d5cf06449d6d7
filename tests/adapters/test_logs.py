"""The log: levels, fields, repetitions, and what never appears in it."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from jetstream.errors import PullRefused
from jetstream.events import PullWarning, RequestFailed
from natsproto.adapters.logs import MOST_CAUSES, EventLogger
from natsproto.connection.waitable import Reports
from natsproto.errors import ConnectionLost
from natsproto.events import (
    AttemptFailed,
    Connected,
    Disconnected,
    Discovered,
    LameDuck,
    ServerError,
    SlowConsumer,
)
from tests.core import ROOT

LOST = ConnectionLost("reset")


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.DEBUG, logger="natsproto")
    return caplog


def write(*events, source="", now=0.0, logger=None):
    reports = Reports(source)
    for event in events:
        reports.add(event)
    (logger or EventLogger("device")).write(reports, lambda: now)


@pytest.mark.rule("D-LOG-1")
def test_the_level_follows_the_event(log):
    write(Connected("u", False), Disconnected("u", LOST), Discovered(["v"]))
    assert [(each.name, each.levelname, each.getMessage()) for each in log.records] == [
        ("natsproto", "INFO", "connected to u (Connected)"),
        ("natsproto", "WARNING", "disconnected from u: reset (Disconnected)"),
        ("natsproto", "DEBUG", "discovered servers: v (Discovered)"),
    ]


@pytest.mark.rule("D-LOG-6")
def test_the_fields_of_a_record(log):
    write(Disconnected("u", LOST), SlowConsumer("s", 3, 9), source="consumer 'w'")
    fields = [
        {name: value for name, value in vars(record).items() if name.startswith("nats_")}
        for record in log.records
    ]
    common = {"nats_source": "consumer 'w'", "nats_client": "device", "nats_repeats": 0}
    assert fields == [
        {**common, "nats_event": "Disconnected", "nats_url": "u", "nats_error": "reset"},
        {
            **common,
            "nats_event": "SlowConsumer",
            "nats_subject": "s",
            "nats_sid": 3,
            "nats_dropped": 9,
        },
    ]


def test_the_source_is_named_once(log):
    named = PullRefused(409, "x", "consumer 'w'")
    write(PullWarning(named), PullWarning(PullRefused(409, "y")), source="consumer 'w'")
    assert [each.getMessage().count("consumer 'w'") for each in log.records] == [1, 1]


@pytest.mark.rule("D-LOG-2")
def test_neither_credentials_nor_payloads_nor_control_characters(log):
    error = ConnectionLost("cannot reach nats://u:hush@host\r\nfake: \x1b[31m line")
    write(ServerError(error), RequestFailed("e", "s", ValueError("the payload")))
    first, second = log.records
    assert "nats://***@host\\r\\nfake: \\x1b[31m line" in first.getMessage()
    assert "hush" not in repr(vars(first))
    assert "\x1b" not in str(vars(first)["nats_error"])
    assert vars(second)["nats_error"] == "ValueError"
    assert "payload" not in repr(vars(second))


REPEATS = [  # seconds at which the same warning occurs, those at which it is logged
    ([0.0, 1.0, 9.9], [0.0]),
    (range(0, 301, 5), [0, 10, 30, 70, 130, 190, 250]),
    ([0.0, 10.0, 89.9], [0.0, 10.0, 89.9]),
    ([0.0, 10.0, 95.0, 105.0], [0.0, 10.0, 95.0, 105.0]),  # a pause of a minute: it starts over
]


@pytest.mark.rule("D-LOG-3")
@pytest.mark.parametrize(("times", "logged"), REPEATS)
def test_a_warning_that_repeats(log, times, logged):
    logger = EventLogger("")
    at = []
    for now in times:
        write(ServerError(LOST), now=now, logger=logger)
        at += [now] * (len(log.records) - len(at))
    assert at == list(logged)
    repeats = sum(vars(each)["nats_repeats"] for each in log.records)
    assert repeats + len(at) <= len(times)


@pytest.mark.rule("D-LOG-3")
def test_dropped_messages_are_added_up(log):
    logger = EventLogger("")
    for now in (0.0, 1.0, 2.0, 10.0):
        write(SlowConsumer("s", 1, 5), SlowConsumer("t", 2, 1), now=now, logger=logger)
    dropped = [(vars(each)["nats_sid"], vars(each)["nats_dropped"]) for each in log.records]
    assert dropped == [(1, 5), (2, 1), (1, 15), (2, 3)]


@pytest.mark.rule("D-LOG-3")
def test_after_a_connection_the_next_failure_is_logged_at_once(log):
    logger = EventLogger("")
    failed = AttemptFailed("u", LOST)
    write(failed, failed, ServerError(LOST), Connected("u", True), failed, logger=logger)
    write(ServerError(LOST), now=1.0, logger=logger)
    assert [vars(each)["nats_event"] for each in log.records] == [
        "AttemptFailed",
        "ServerError",
        "Connected",
        "AttemptFailed",
    ]


@pytest.mark.rule("D-LOG-3")
def test_very_many_different_warnings(log):
    logger = EventLogger("")
    for number in range(MOST_CAUSES + 100):
        write(ServerError(ConnectionLost(str(number))), logger=logger)
    assert len(log.records) == MOST_CAUSES + 1


@pytest.mark.rule("D-LOG-5")
def test_a_handler_that_raises_does_no_harm(log, capsys):
    def broken(record):
        raise ValueError("broken filter")

    logging.getLogger("natsproto").addFilter(broken)
    try:
        write(Connected("u", False), LameDuck("u"))
    finally:
        logging.getLogger("natsproto").removeFilter(broken)
    assert capsys.readouterr().err.count("ValueError: broken filter") == 2


@pytest.mark.rule("D-LOG-1")
def test_a_level_that_is_off_costs_nothing(log):
    logging.getLogger("natsproto").setLevel(logging.ERROR)
    write(Connected("u", False), Disconnected("u", LOST))
    assert log.records == []


CASES = [  # prepare, event, standard error
    ("sys.modules['logging'] = None", "Disconnected('u', ConnectionLost('x'))", ""),
    ("", "Connected('u', False)", ""),
    ("", "Disconnected('u', ConnectionLost('x'))", "disconnected from u: x (Disconnected)\n"),
]


@pytest.mark.parametrize(("prepare", "event", "shown"), CASES)
def test_programs_that_do_not_use_logging(prepare, event, shown):
    """They see warnings on standard error; without the logging module there is no log."""
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from natsproto.adapters.logs import EventLogger
from natsproto.connection.waitable import Reports
from natsproto.errors import ConnectionLost
from natsproto.events import Connected, Disconnected
{prepare}
reports = Reports()
reports.add({event})
EventLogger("").write(reports, float)
print(bool(sys.modules.get("logging")))
sys.modules.pop("logging", None)
"""
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (run.stdout.strip(), run.stderr) == (str(bool(shown)), shown)
