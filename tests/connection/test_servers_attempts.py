"""Which server is dialed, and when, without a connection."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.servers import Attempts, Pool
from natsproto.errors import AuthorizationFailed, ConnectFailed, ConnectionLost, InvalidValue
from natsproto.events import ServerChoiceFailed
from natsproto.options import Options
from tests.connection.support import Script


def make(reconnecting=True, **options):
    options = {"servers": ["nats://a", "nats://b"], "shuffle": False, **options}
    pool = Pool(Options(reconnect_wait=1.0, reconnect_jitter=0.0, **options), Script())
    return Attempts(pool, Bus(), reconnecting), pool


def choose(attempts):
    delay = attempts.choose()
    return None if delay is None else (attempts.server.url.host, delay)


@pytest.mark.rule("POOL-3")
def test_the_first_connect_tries_each_server_once():
    attempts, _ = make(reconnecting=False)
    assert [choose(attempts) for _ in range(3)] == [("a", 0.0), ("b", 0.0), None]
    attempts.connected(10.0)
    assert choose(attempts) == ("a", 1.0)


@pytest.mark.rule("POOL-7", "D-RECON-2")
def test_a_reconnect_starts_at_once_and_then_waits_longer_and_longer():
    attempts, _ = make()
    choose(attempts)
    attempts.connected(10.0)
    attempts.lost(None, "", 11.0)
    found = [choose(attempts) for _ in range(4)]
    assert found == [("b", 0.0), ("a", 1.0), ("b", 2.0), ("a", 4.0)]


@pytest.mark.rule("D-RECON-2")
@pytest.mark.parametrize(("lasted", "delays"), [(0.9, [0.0, 1.0, 2.0]), (1.0, [0.0, 0.0, 0.0])])
def test_connections_that_do_not_last_count_as_attempts(lasted, delays):
    attempts, _ = make()
    found = []
    choose(attempts)
    for _ in range(3):
        attempts.connected(10.0)
        attempts.lost(None, "", 10.0 + lasted)
        found.append(attempts.choose())
    assert found == delays
    attempts.connected(10.0)
    attempts.forgive()
    attempts.lost(None, "", 10.0)
    assert attempts.choose() == 0.0


@pytest.mark.rule("RECON-6")
def test_servers_that_were_replaced_during_the_delay():
    attempts, pool = make()
    choose(attempts)
    attempts.confirm()
    assert attempts.server.url.host == "a"
    pool.set_servers("nats://c")
    attempts.confirm()
    assert attempts.server.url.host == "c"


@pytest.mark.rule("POOL-16")
def test_the_program_sets_the_server_and_the_delay():
    choices = [("nats://b:4222", 7.0), "nats://b:4222", None]
    attempts, pool = make(choose_server=lambda known, info: choices.pop(0))
    assert [choose(attempts) for _ in range(2)] == [("a", 0.0), ("b", 0.0)]  # the first round
    assert [choose(attempts) for _ in range(3)] == [("b", 7.0), ("b", 2.0), ("a", 4.0)]
    choices.append("nats://d:4222")
    pool.set_servers(["nats://c", "nats://d"])
    attempts.confirm()
    assert attempts.server.url.host == "d"


@pytest.mark.rule("POOL-17")
def test_a_mistake_of_the_program_is_reported_once():
    choices = ["nats://x", "nats://b:4222"]
    bus = Bus()
    pool = Pool(Options(servers=["a", "b"], choose_server=lambda *_: choices.pop(0)), Script())
    attempts = Attempts(pool, bus, True)
    choose(attempts)
    choose(attempts)
    assert bus.events.pop() is None
    choose(attempts)
    event = bus.events.pop()
    assert (type(event), event.error.rule) == (ServerChoiceFailed, "POOL-17")
    choose(attempts)
    assert bus.events.pop() is None


@pytest.mark.rule("CONN-17")
@pytest.mark.parametrize(
    ("refusals", "end"),
    [
        (["", "no", "", "no", "never"], False),
        (["", "no", "", "no", "never", "never"], True),
    ],
)
def test_the_same_refusal_twice_in_a_row(refusals, end):
    attempts, _ = make(servers="nats://a")
    choose(attempts)
    for refusal in refusals:
        error = AuthorizationFailed(refusal)
        attempts.failed(error, refusal)
    assert (choose(attempts) is None, attempts.why_failed() is error) == (end, True)


@pytest.mark.rule("CONN-17")
@pytest.mark.parametrize(("lasted", "end"), [(0.5, True), (3600.0, False)])
def test_a_refusal_after_a_good_while_is_not_the_same(lasted, end):
    attempts, _ = make(servers="nats://a")
    choose(attempts)
    attempts.failed(AuthorizationFailed("no"), "no")
    attempts.connected(0.0)
    attempts.lost(AuthorizationFailed("no"), "no", lasted)
    assert (choose(attempts) is None) is end


@pytest.mark.rule("D-CONN-18")
def test_there_is_no_use_in_repeating_a_mistake_of_our_own():
    attempts, _ = make()
    choose(attempts)
    error = InvalidValue("no such file")
    attempts.failed(error)
    assert (choose(attempts), attempts.why_failed()) == (None, error)


def test_one_error_for_all_attempts():
    attempts, _ = make()
    for text in ("one", "two", "three"):
        choose(attempts)
        attempts.failed(ConnectionLost(text))
    error = attempts.why_failed()
    assert isinstance(error, ConnectFailed)
    assert [str(each) for _, each in error.errors] == ["two", "three"]
    refused = AuthorizationFailed("no")
    attempts.failed(refused)
    assert attempts.why_failed() is refused
    attempts.connected(1.0)
    attempts.lost(ConnectionLost("gone"), "", 2.0)
    assert str(attempts.why_failed()).endswith("gone")


@pytest.mark.rule("POOL-5")
def test_an_attempt_that_fails_counts_for_its_server():
    attempts, pool = make(max_reconnects=2)
    assert [choose(attempts), choose(attempts)] == [("a", 0.0), ("b", 0.0)]
    attempts.connected(0.0)
    attempts.lost(ConnectionLost("x"), "", 10.0)
    for host, failures in (("a", 1), ("b", 1), ("a", 2), ("b", 2)):
        assert choose(attempts)[0] == host
        error = ConnectionLost("y")
        attempts.failed(error)
        assert (attempts.server.failures, attempts.server.last_error) == (failures, error)
    assert (pool.servers, choose(attempts)) == ([], None)
