"""Which server is dialed, and when, without a connection."""

from __future__ import annotations

import pytest

from natsproto.connection.servers import Attempts, Pool
from natsproto.errors import AuthorizationFailed, ConnectFailed, ConnectionLost
from natsproto.options import Options
from tests.connection.support import Script


def make(**options):
    options = {"servers": ["nats://a", "nats://b"], "shuffle": False, **options}
    pool = Pool(Options(reconnect_wait=1.0, reconnect_jitter=0.0, **options), Script())
    return Attempts(pool), pool


def choose(attempts, reconnecting=True):
    delay = attempts.choose(reconnecting)
    return None if delay is None else (attempts.server.url.host, delay)


@pytest.mark.rule("POOL-3")
def test_the_first_connect_tries_each_server_once():
    attempts, _ = make()
    assert [choose(attempts, False) for _ in range(3)] == [("a", 0.0), ("b", 0.0), None]


@pytest.mark.rule("POOL-7", "D-RECON-2")
def test_a_reconnect_starts_at_once_and_then_waits_longer_and_longer():
    attempts, _ = make()
    choose(attempts)
    attempts.connected(10.0)
    attempts.lost(None, 11.0)
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
        attempts.lost(None, 10.0 + lasted)
        found.append(attempts.choose(True))
    assert found == delays
    attempts.connected(10.0)
    attempts.forgive()
    attempts.lost(None, 10.0)
    assert attempts.choose(True) == 0.0


@pytest.mark.rule("RECON-6")
def test_servers_that_were_replaced_during_the_delay():
    attempts, pool = make()
    choose(attempts)
    assert attempts.confirm().url.host == "a"
    pool.set_servers("nats://c")
    assert attempts.confirm().url.host == "c"


@pytest.mark.rule("POOL-16")
def test_the_program_sets_the_server_and_the_delay():
    choices = [("nats://b:4222", 7.0), "nats://b:4222", None]
    attempts, pool = make(choose_server=lambda known, info: choices.pop(0))
    assert [choose(attempts) for _ in range(2)] == [("a", 0.0), ("b", 0.0)]  # the first round
    assert [choose(attempts) for _ in range(3)] == [("b", 7.0), ("b", 2.0), ("a", 4.0)]
    choices.append("nats://d:4222")
    pool.set_servers(["nats://c", "nats://d"])
    assert attempts.confirm().url.host == "d"


@pytest.mark.rule("POOL-17")
def test_a_mistake_of_the_program_is_kept_for_one_call():
    choices = ["nats://x", "nats://b:4222"]
    attempts, _ = make(choose_server=lambda known, info: choices.pop(0))
    choose(attempts)
    choose(attempts)
    assert (choose(attempts), attempts.mistake.rule) == (("a", 1.0), "POOL-17")
    assert (choose(attempts), attempts.mistake) == (("b", 2.0), None)


@pytest.mark.rule("CONN-17")
def test_the_same_refusal_twice_in_a_row():
    attempts, _ = make(servers="nats://a")
    choose(attempts)
    texts = ["", "no", "", "no", "never", "never"]
    assert [attempts.refused_again(text) for text in texts] == [False] * 5 + [True]


@pytest.mark.rule("CONN-17")
def test_a_rejection_after_a_long_connection_is_not_the_same():
    attempts, _ = make(servers="nats://a")
    choose(attempts)
    attempts.refused_again("no")
    attempts.connected(0.0)
    attempts.lost(AuthorizationFailed("no"), 3600.0)
    assert not attempts.refused_again("no")


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
    attempts.lost(ConnectionLost("gone"), 2.0)
    assert str(attempts.why_failed()).endswith("gone")
