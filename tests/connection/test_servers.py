from __future__ import annotations

import random

import pytest

from natsproto.connection.servers import MAX_DISCOVERED, Pool, Server
from natsproto.errors import InvalidValue
from natsproto.options import Options, ServerUrl

ERROR = OSError("refused")


class Script:
    """Scripted randomness; `asked` records the requests."""

    def __init__(self, numbers=(), fraction=0.0):
        self.numbers = list(numbers)
        self.fraction = fraction
        self.asked = []

    def randrange(self, limit):
        self.asked.append(limit)
        number = self.numbers.pop(0)
        assert 0 <= number < limit
        return number

    def random(self):
        return self.fraction


def make(servers="a b c", rng=None, **options):
    options.setdefault("shuffle", False)
    return Pool(Options(servers=servers.split(), **options), rng or Script())


def names(pool):
    return " ".join(url.host for url in pool.urls)


def told(pool, via, texts):
    return [str(url) for url in pool.discover(texts.split(), via)]


def connect(pool):
    """Return the first server of the first round, connected."""
    server = pool.next_untried()
    pool.connected(server)
    return server


def run(pool, steps):
    """Run the steps: each requests a server, which then fails (-) or connects (+): "a- b+"."""
    for step in steps.split():
        server = pool.next()
        assert server.url.host == step[:-1], step
        if step[-1] == "+":
            pool.connected(server)
        else:
            pool.failed(server, ERROR)


@pytest.mark.rule("POOL-1")
def test_order_as_given():
    pool = make("c a b")
    assert names(pool) == "c a b"
    assert [server.url for server in pool.servers] == pool.urls


@pytest.mark.rule("POOL-1")
@pytest.mark.parametrize(
    ("numbers", "order"),
    [([3, 2, 1], "a b c d"), ([0, 0, 0], "b c d a"), ([1, 0, 1], "c d a b")],
)
def test_order_by_chance(numbers, order):
    rng = Script(numbers)
    assert names(make("a b c d", rng, shuffle=True)) == order
    assert rng.asked == [4, 3, 2]


@pytest.mark.rule("POOL-1")
def test_any_rng_works_and_the_same_seed_produces_the_same_order():
    servers = " ".join(f"h{i}" for i in range(20))
    orders = [names(make(servers, random.Random(seed), shuffle=True)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0].split()) == sorted(servers.split())


@pytest.mark.rule("POOL-1")
def test_an_address_given_twice_counts_once():
    pool = make("one@a b A:4222 two@a")
    assert names(pool) == "a b"
    assert pool.urls[0].token == "one"


@pytest.mark.rule("POOL-2")
@pytest.mark.parametrize(("hostname", "expected"), [("", "a"), ("nats.example", "nats.example")])
def test_the_name_of_a_configured_server(hostname, expected):
    [server] = make("tls://a", tls_hostname=hostname).servers
    assert (server.tls_name, server.discovered) == (expected, False)


@pytest.mark.rule("POOL-3")
def test_the_first_round_tries_each_server_once_and_counts_nothing():
    pool = make(max_reconnects=1)
    for name in "abc":
        server = pool.next_untried()
        assert server.url.host == name
        pool.failed(server, ERROR)
        assert (server.failures, server.last_error) == (0, ERROR)
    assert pool.next_untried() is None
    assert names(pool) == "a b c"
    run(pool, "a- b- c-")
    assert pool.next() is None


@pytest.mark.rule("POOL-3")
def test_the_first_round_is_for_servers_that_the_user_named():
    pool = make("a b")
    pool.discover(["x"], pool.next_untried())
    assert names(pool) == "b x a"
    assert pool.next_untried().url.host == "b"
    assert pool.next_untried() is None


@pytest.mark.rule("POOL-3")
def test_a_connection_ends_the_first_round():
    pool = make()
    connect(pool)
    assert pool.next_untried() is None


@pytest.mark.rule("POOL-3")
def test_reconnecting_ends_the_first_round():
    pool = make(max_reconnects=1)
    pool.next_untried()
    run(pool, "b-")
    assert pool.next_untried() is None
    assert names(pool) == "c a"


@pytest.mark.rule("POOL-4")
@pytest.mark.parametrize(
    ("steps", "then"),
    [
        ("", "b c a"),
        ("b- c- a- b-", "c a b"),
        ("b+", "c a b"),
        ("b- c+", "a b c"),
        ("b- c- a+", "b c a"),
    ],
)
def test_round_robin_with_the_current_one_last(steps, then):
    pool = make()
    connect(pool)
    run(pool, steps)
    assert names(pool) == then
    assert [pool.next().url.host for _ in "abc"] == then.split()


@pytest.mark.rule("POOL-4")
def test_a_connected_server_that_was_not_next_is_moved_to_the_end():
    pool = make()
    pool.connected(pool.servers[1])
    assert names(pool) == "a c b"
    assert pool.current.url.host == "b"


@pytest.mark.rule("POOL-5", "POOL-6")
@pytest.mark.parametrize(
    ("limit", "steps", "left"),
    [
        (1, "b-", "c a"),
        (1, "b- c-", "a"),
        (1, "b- c- a-", ""),
        (2, "b- c- a- b-", "c a"),
        (2, "b- c- a- b- c- a-", ""),
        (2, "b- c- a+ b- c+ a- c+ a-", "c"),
        (2, "b- c- a+ b- c- a+", "a"),
        (-1, "b- c- a- " * 100, "b c a"),
    ],
)
def test_servers_that_fail_too_often_leave(limit, steps, left):
    pool = make(max_reconnects=limit)
    connect(pool)
    run(pool, steps)
    assert names(pool) == left
    assert (pool.next() is None) == (not left)


@pytest.mark.rule("POOL-5")
def test_no_reconnects_at_all():
    pool = make(max_reconnects=0)
    connect(pool)
    assert pool.next() is None
    assert names(pool) == "b c a"


@pytest.mark.rule("POOL-6")
def test_the_state_kept_for_a_server():
    pool = make("a")
    server = connect(pool)
    server.auth_error = "Authorization Violation"
    pool.next()
    pool.failed(server, ERROR)
    pool.failed(server, ERROR)
    assert (server.failures, server.last_error) == (2, ERROR)
    assert repr(server) == "Server(nats://a:4222, configured, failures=2)"
    pool.connected(server)
    assert (server.failures, server.last_error) == (0, None)
    assert server.auth_error == "Authorization Violation"


def test_a_server_that_left_may_fail_or_connect_without_coming_back():
    pool = make("a b", max_reconnects=1)
    gone = connect(pool)
    run(pool, "b- a-")
    pool.failed(gone, ERROR)
    pool.connected(gone)
    assert pool.urls == []
    assert pool.current is gone


@pytest.mark.rule("POOL-7")
@pytest.mark.parametrize(
    ("attempt", "fraction", "expected"),
    [
        (-1, 0.9, 0.0),
        (0, 0.9, 0.0),
        (1, 0.0, 1.0),
        (2, 0.0, 2.0),
        (3, 0.0, 4.0),
        (3, 0.5, 5.0),
        (4, 0.0, 8.0),
        (5, 0.0, 12.0),
        (5, 1.0, 18.0),
        (6, 0.0, 12.0),
        (10**9, 0.5, 15.0),
    ],
)
def test_delay(attempt, fraction, expected):
    rng = Script(fraction=fraction)
    pool = make("a", rng, reconnect_wait=1, reconnect_wait_max=12, reconnect_jitter=0.5)
    assert pool.delay(attempt) == expected


@pytest.mark.rule("POOL-7")
def test_delay_with_defaults_and_without_jitter():
    assert [make().delay(n) for n in range(8)] == [0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0]
    assert make(rng=Script(fraction=0.9), reconnect_jitter=0).delay(1) == 0.25
    assert make(reconnect_wait=0).delay(9) == 0.0


@pytest.mark.rule("POOL-15")
def test_given_delays_replace_the_computed_ones():
    pool = make(rng=Script(fraction=0.9), reconnect_delays=[0, 0.5, 3])
    assert [pool.delay(attempt) for attempt in (-1, 0, 1, 2, 3, 10**9)] == [0, 0, 0.5, 3, 3, 3]
    assert make(reconnect_delays=[2.0]).delay(0) == 2.0


@pytest.mark.rule("POOL-16")
def test_the_program_chooses_the_server_of_a_reconnect():
    seen = []

    def choose(known, info):
        seen.append([(each.url, each.discovered, each.failures, each.current) for each in known])
        return known[1], 3.0

    pool = make("a b", choose_server=choose)
    server = connect(pool)
    pool.discover(["x:1"], server)
    found, delay = pool.choose(None)
    assert (found.url.host, delay, names(pool)) == ("x", 3.0, "b a x")
    assert [url for url, _, _, _ in seen[0]] == [
        "nats://b:4222",
        "nats://x:1",
        "nats://a:4222",
    ]
    assert [(found, current) for _, found, _, current in seen[0]] == [
        (False, False),
        (True, False),
        (False, True),
    ]
    pool.failed(found, OSError())
    pool.choose(None)
    assert [failures for _, _, failures, _ in seen[1]] == [0, 0, 1]


@pytest.mark.rule("POOL-16", "POOL-5")
def test_the_client_chooses_where_the_program_does_not():
    pool = make("a b", choose_server=lambda known, info: None)
    assert pool.choose(None)[0].url.host == "a"
    assert make("a b").choose(None)[0].url.host == "a"
    assert make("a", choose_server=pytest.fail, max_reconnects=0).choose(None) == (None, None)
    pool = make("a", choose_server=lambda known, info: known[0], max_reconnects=1)
    pool.failed(pool.choose(None)[0], OSError())
    assert pool.choose(None) == (None, None)


DISCOVERED = [  # what INFO of a lists, what is new, the pool
    ("", "", "b a"),
    ("a:4222 b:4222", "", "b a"),
    ("x:1 y:2", "nats://x:1 nats://y:2", "b x y a"),
    ("x:1 x:1 X:1", "nats://x:1", "b x a"),
    ("a:4223", "nats://a:4223", "b a a"),
    ("[::1]:4222 x", "nats://[::1]:4222 nats://x:4222", "b ::1 x a"),
    ("x:0 x:y ::1 [x]:1 x:65536 x?y=1 x#y a,b", "", "b a"),
    ("nats://x:1 tls://x:1 evil@x:1 u:p@x:1 x:1/path //x @ / : ? ", "", "b a"),
    ("junk: x:1 \x00", "nats://x:1", "b x a"),
]


@pytest.mark.rule("POOL-8", "POOL-12")
@pytest.mark.parametrize(("texts", "new", "left"), DISCOVERED)
def test_discover(texts, new, left):
    pool = make("a b")
    server = connect(pool)
    assert told(pool, server, texts) == new.split()
    assert names(pool) == left
    assert told(pool, server, texts) == []
    assert names(pool) == left


@pytest.mark.rule("POOL-8")
def test_a_cluster_has_its_limits():
    pool = make("a")
    new = pool.discover([f"x:{port}" for port in range(1, MAX_DISCOVERED + 100)], connect(pool))
    assert len(new) == MAX_DISCOVERED
    assert len(pool.urls) == MAX_DISCOVERED + 1


@pytest.mark.rule("POOL-9")
@pytest.mark.parametrize(
    ("texts", "left"),
    [
        ("x:1 y:2", "b x y a"),
        ("y:2", "b y a"),
        ("y:2 z:3", "b y z a"),
        ("a:4222", "b a"),
        ("", "b x y a"),
        ("junk: nats://z", "b x y a"),
    ],
)
def test_members_that_are_no_longer_listed(texts, left):
    pool = make("a b")
    server = connect(pool)
    pool.discover(["x:1", "y:2"], server)
    pool.discover(texts.split(), server)
    assert names(pool) == left


@pytest.mark.rule("POOL-9")
def test_the_current_and_the_announcing_server_stay():
    pool = make("a")
    pool.discover(["x:1", "y:2", "z:3"], connect(pool))
    run(pool, "x+")
    asked = pool.next()
    assert asked.url.host == "y"
    pool.discover(["a:4222"], asked)
    assert names(pool) == "a x y"
    pool.connected(asked)
    pool.discover(["a:4222"], asked)
    assert names(pool) == "a y"


@pytest.mark.rule("POOL-10")
@pytest.mark.parametrize(
    ("hostname", "expected"), [("", "nats.example"), ("other.example", "other.example")]
)
def test_the_name_of_a_discovered_server_is_never_its_own(hostname, expected):
    pool = make("tls://nats.example", tls_hostname=hostname)
    pool.discover(["evil.example:4222"], connect(pool))
    first = pool.next()
    assert (first.url.host, first.discovered) == ("evil.example", True)
    assert first.tls_name == expected
    pool.connected(first)
    pool.discover(["worse.example:4222", "evil.example:4222"], first)
    assert [server.tls_name for server in pool.servers] == [expected] * 3
    assert repr(first) == "Server(tls://evil.example:4222, discovered, failures=0)"


@pytest.mark.rule("POOL-11")
@pytest.mark.parametrize(
    ("servers", "options", "expected"),
    [
        ("nats://a", {}, "nats://x:1"),
        ("tls://a", {}, "tls://x:1"),
        ("nats://a tls://b", {}, "tls://x:1"),
        ("nats://a", {"tls": True}, "tls://x:1"),
        ("nats://a", {"tls": object()}, "tls://x:1"),
        ("nats://a", {"tls_first": True}, "tls://x:1"),
        ("ws://a/path", {}, "ws://x:1"),
        ("wss://a/path", {}, "wss://x:1"),
        ("ws://a wss://b", {}, "wss://x:1"),
    ],
)
def test_tls_is_for_discovered_servers_too(servers, options, expected):
    pool = make(servers, **options)
    assert told(pool, connect(pool), "x:1") == [expected]


@pytest.mark.rule("POOL-11")
@pytest.mark.parametrize(
    ("server", "expected"), [("u:p@a", ("u", "p", "")), ("t@a", ("", "", "t")), ("a", ("", "", ""))]
)
def test_credentials_are_for_discovered_servers_too(server, expected):
    pool = make(server)
    [url] = pool.discover(["x:1"], connect(pool))
    assert (url.user, url.password, url.token) == expected


@pytest.mark.rule("POOL-12")
@pytest.mark.parametrize(
    ("numbers", "order"), [([0, 0], "y x b a"), ([1, 2], "b x y a"), ([1, 0], "y b x a")]
)
def test_new_members_are_inserted_at_random_before_the_one_in_use(numbers, order):
    rng = Script([1, *numbers])
    pool = make("a b", rng, shuffle=True)
    pool.discover(["x:1", "y:2"], connect(pool))
    assert names(pool) == order
    assert rng.asked == [2, 2, 3]


@pytest.mark.rule("POOL-12")
def test_new_members_are_last_if_the_one_in_use_has_left():
    pool = make("a b")
    server = connect(pool)
    pool.set_servers("c")
    pool.discover(["x:1"], server)
    assert names(pool) == "c x"
    pool = make("a", max_reconnects=1)
    server = connect(pool)
    run(pool, "a-")
    pool.discover(["x:1"], server)
    assert names(pool) == "x"


@pytest.mark.rule("POOL-13")
def test_ignore_discovered():
    pool = make("a b", ignore_discovered=True)
    assert told(pool, connect(pool), "x:1") == []
    assert names(pool) == "b a"


@pytest.mark.rule("POOL-14")
def test_a_new_pool_replaces_everything():
    pool = make("tls://a b")
    pool.discover(["x:1"], connect(pool))
    pool.set_servers(["c", "d"])
    assert names(pool) == "c d"
    assert all(server.failures == 0 for server in pool.servers)
    assert pool.current.url.host == "a"
    assert told(pool, pool.servers[1], "y:1") == ["nats://y:1"], "no TLS was asked for this time"


@pytest.mark.rule("POOL-14")
def test_a_new_pool_is_shuffled_but_for_the_current_server():
    pool = make("a", Script([0, 0]), shuffle=True)
    connect(pool)
    pool.set_servers(["a", "b", "c"])
    assert names(pool) == "b c a"


@pytest.mark.rule("POOL-14", "POOL-10")
def test_a_server_in_both_pools_stays_the_same():
    pool = make("a", max_reconnects=2)
    connect(pool)
    pool.discover(["x:1", "y:2"], pool.current)
    run(pool, "x- y+")
    a, x, y = pool.servers
    pool.set_servers(("y:2", "token@x:1"))
    assert pool.servers == [x, y]
    assert (x.failures, x.url.token, x.discovered, x.tls_name) == (1, "token", False, "x")
    run(pool, "x-")
    assert pool.servers == [y]
    pool.connected(a)
    pool.set_servers(["b", "a"])
    assert pool.servers[1] is a, "the current one is known even when it is in no pool"


@pytest.mark.rule("POOL-3", "POOL-14")
def test_a_new_pool_in_the_first_round_is_tried_once():
    pool = make("a b")
    pool.next_untried()
    pool.set_servers("c")
    assert pool.next_untried().url.host == "c"
    assert pool.next_untried() is None


@pytest.mark.rule("OPT-7", "POOL-14")
@pytest.mark.parametrize(
    ("servers", "why"),
    [
        ([], "at least one"),
        (["b", "c:0"], "has a port"),
        ("ws://b", "cannot change between WebSocket and plain"),
        (["b", "ws://c"], "do not mix"),
    ],
)
def test_a_new_pool_that_is_refused_changes_nothing(servers, why):
    pool = make("a b")
    connect(pool)
    with pytest.raises(InvalidValue, match=why):
        pool.set_servers(servers)
    assert names(pool) == "b a"


@pytest.mark.rule("D-OPT-8", "POOL-14")
def test_a_new_pool_uses_tls_if_the_options_require_it():
    pool = make("wss://a", tls=True)
    with pytest.raises(InvalidValue, match="would have no TLS"):
        pool.set_servers("ws://b")


def test_others():
    pool = make("a")
    assert pool.others()
    assert pool.current is None
    server = connect(pool)
    assert pool.current is server
    assert not pool.others()
    pool.discover(["x:1"], server)
    assert pool.others()
    pool.set_servers("a")
    assert not pool.others()
    pool.set_servers("b")
    assert pool.others()


def test_the_returned_list_is_a_copy():
    pool = make("a")
    pool.urls.clear()
    pool.servers.clear()
    assert pool.urls == [ServerUrl("nats", "a", 4222)]
    assert isinstance(pool.servers[0], Server)


@pytest.mark.rule("POOL-8")
@pytest.mark.parametrize("count", [999, 1000, 1001])
def test_how_many_members_are_believed(count):
    pool = make("a")
    server = connect(pool)
    assert len(pool.discover([f"h{number}:4222" for number in range(count)], server)) == min(
        count, 1000
    )
