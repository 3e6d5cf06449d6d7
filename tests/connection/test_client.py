"""Client and Events, without a server: how they use the connection and the port."""

from __future__ import annotations

import pytest

from natsproto.client import leave
from natsproto.connection.outbound import HIGH_WATER
from natsproto.errors import (
    ConnectionClosed,
    ConnectionLost,
    InvalidValue,
    MessagesUnconfirmed,
    NoResponders,
    TimeoutExpired,
    TooManyReplies,
)
from natsproto.events import Closed, Connected, Disconnected
from natsproto.wire.frames import Msg
from tests.connection.support import PONG, Wire
from tests.jetstream.support import NOBODY, SILENCE, Stage, Status


def test_a_new_client_has_no_server():
    stage = Stage()
    fresh = type(stage.client)(Wire().connection, stage)
    assert (fresh.state, fresh.info, fresh.connected_url) == ("NEW", None, "")
    assert repr(fresh) == "<Client NEW >"


def test_the_repr_of_a_client_has_no_credentials():
    stage = Stage()
    client = stage.client
    stage.connection.pool.set_servers(["nats://me:secret@a:4222", "nats://b:4222"])
    stage.wire.lost(at=9.0).lost().up()
    assert client.connected_url == "nats://a:4222"
    assert repr(client) == "<Client CONNECTED nats://a:4222>"
    assert sorted(client.servers) == ["nats://a:4222", "nats://b:4222"]
    assert client.info is not None
    assert client.info.version == "2.15.1"
    assert (client.stats.connects, client.stats.reconnects) == (2, 1)


def test_set_servers_replaces_the_pool():
    client = Stage().client
    client.set_servers("nats://z:1")
    assert client.servers == ["nats://z:1"]
    with pytest.raises(InvalidValue, match="servers is empty"):
        client.set_servers([])


def test_publish_is_sent_unchanged():
    stage = Stage()
    stage.run(stage.client.publish("a", b"1", reply="r", headers={"K": "v"}))
    stage.run(stage.client.publish("a", b"2"))
    first = b"HPUB a r 18 19\r\nNATS/1.0\r\nK: v\r\n\r\n1\r\n"
    assert stage.wire.sent() == first + b"PUB a 1\r\n2\r\n"
    assert stage.waits == 0


def test_publish_waits_while_too_much_is_in_flight():
    stage = Stage()
    stage.wire.writable = False
    chunk = b"x" * 65_000
    taken = []

    async def wait(waitable):
        taken.append(waitable)
        stage.wire.writable = True
        stage.wire.look()

    stage.wait = wait
    for _ in range(HIGH_WATER // len(chunk) + 2):
        stage.run(stage.client.publish("a", chunk))
    assert taken == [stage.connection.writable]
    assert not stage.connection.congested


@pytest.mark.rule("D-REQ-12")
def test_a_response_goes_to_the_reply_subject():
    stage = Stage()
    stage.run(stage.client.respond(Msg(b"svc", 1, b"_INBOX.1", b"?"), b"yes", headers={"K": "v"}))
    (sent,) = stage.pubs
    assert (sent.subject, sent.data, sent.headers["K"]) == ("_INBOX.1", b"yes", "v")


@pytest.mark.rule("D-REQ-12")
def test_a_message_without_a_reply_subject_cannot_be_answered():
    stage = Stage()
    with pytest.raises(InvalidValue, match=r"'svc' has no reply subject.*D-REQ-12"):
        stage.run(stage.client.respond(Msg(b"svc", 1, b"", b"?"), b"yes"))
    assert stage.pubs == []


@pytest.mark.rule("D-PING-6")
def test_rtt_is_the_time_from_ping_to_pong():
    stage = Stage()
    times = iter([1.0, 1.25])
    stage.ticks = lambda: next(times)
    assert stage.client.health().rtt is None
    assert stage.run(stage.client.rtt()) == 0.25
    assert stage.client.health().rtt == 0.25


@pytest.mark.rule("D-PING-6")
def test_rtt_needs_a_connection():
    stage = Stage()
    stage.wire.lost()
    with pytest.raises(ConnectionLost, match="D-PING-6"):
        stage.run(stage.client.rtt())
    stage.connection.close(9.0)
    with pytest.raises(ConnectionClosed):
        stage.run(stage.client.rtt())


@pytest.mark.rule("D-HINT-1")
def test_a_name_of_nats_py_is_answered_with_a_hint():
    stage = Stage()
    with pytest.raises(AttributeError, match=r"'Client'.*'jetstream'; use jetstream.JetStream\("):
        stage.client.jetstream()
    sub = stage.run(stage.client.subscribe("a"))
    with pytest.raises(AttributeError, match="'next_msg'; use next"):
        sub.next_msg()
    for name in ("respond", "header"):
        with pytest.raises(AttributeError, match="'Msg' object has no attribute '%s'; use" % name):
            getattr(Msg(b"a", 1), name)


@pytest.mark.rule("REQ-1")
def test_a_request_returns_the_response():
    stage = Stage(b"yes")
    assert stage.run(stage.client.request("svc", b"?", headers={"K": "v"})).data == b"yes"
    (asked,) = stage.pubs
    assert (asked.subject, asked.data) == ("svc", b"?")


REQUESTS = [  # arrivals,    the error,      its text
    (NOBODY, NoResponders, "no responders on subject 'svc'"),
    (SILENCE, TimeoutExpired, "no answer to the request to 'svc' in time"),
]


@pytest.mark.parametrize(("answer", "error", "text"), REQUESTS)
def test_a_request_without_an_answer_raises(answer, error, text):
    stage = Stage(answer)
    with pytest.raises(error) as raised:
        stage.run(stage.client.request("svc", timeout=0.5))
    assert str(raised.value) == text
    assert stage.now() == (0.5 if answer is SILENCE else 0.0)


MANY = [  # arrivals,                     options,                                  the result
    ([b"1", b"2"], {}, [b"1", b"2"]),
    ([b"1", b"2", b"3"], {"max_msgs": 2}, [b"1", b"2"]),
    ([b"1", b"", b"2"], {"sentinel": lambda msg: not msg.data}, [b"1"]),
    ([b"1"], {"sentinel": lambda msg: False, "stall": 0.1}, [b"1"]),
    (SILENCE, {}, []),
]


@pytest.mark.rule("REQ-6")
@pytest.mark.parametrize(("answer", "options", "expected"), MANY)
def test_request_many_ends_by_its_limits(answer, options, expected):
    stage = Stage(answer)
    replies = stage.run(stage.client.request_many("svc", timeout=1.0, **options))
    assert [reply.data for reply in replies] == expected
    ends_early = "max_msgs" in options or "sentinel" in options
    assert stage.now() == (options.get("stall", 0.0) if ends_early else 1.0)
    assert stage.connection.requests.inbox is not None
    assert stage.connection.requests.inbox.open == {}


@pytest.mark.rule("D-REQ-13")
@pytest.mark.parametrize("timeout", [1.0, None])
def test_responses_one_by_one(timeout):
    stage = Stage([b"1", b"2"])

    async def every():
        options = {"timeout": timeout, "max_msgs": 2, "headers": {"K": "v"}}
        return [msg.data async for msg in stage.client.iter_request_many("svc", b"?", **options)]

    assert stage.run(every()) == [b"1", b"2"]
    [asked] = stage.pubs
    assert (asked.subject, asked.data, asked.headers.get("K")) == ("svc", b"?", "v")


@pytest.mark.rule("D-REQ-10")
def test_request_many_is_bounded():
    stage = Stage([b"1", b"2" * 50, b"3" * 1000])
    with pytest.raises(TooManyReplies) as caught:
        stage.run(stage.client.request_many("svc", max_bytes=500))
    assert [reply.data for reply in caught.value.replies] == [b"1", b"2" * 50]
    assert stage.connection.requests.inbox.open == {}


@pytest.mark.rule("D-REQ-10")
def test_a_sentinel_ends_request_many_before_its_limit_does():
    stage = Stage([b"1", b"", b"3" * 1000])
    asking = stage.client.request_many("svc", max_bytes=500, sentinel=lambda msg: not msg.data)
    assert [reply.data for reply in stage.run(asking)] == [b"1"]


def test_request_many_without_responders_raises():
    stage = Stage(Status("503"))
    with pytest.raises(NoResponders):
        stage.run(stage.client.request_many("svc"))


WRONG = [  # the call,                                             the problem
    (lambda c: c.request("a", timeout=-1), "timeout -1 is not a number of seconds from 0"),
    (lambda c: c.request_many("a", max_msgs=-1), "max_msgs -1 is not a whole number"),
    (lambda c: c.request_many("a", stall="1"), "stall '1' is not a number of seconds"),
    (lambda c: c.iter_request_many("a", max_msgs=-1), "max_msgs -1 is not a whole number"),
    (lambda c: c.subscribe("a", max_msgs=True), "max_msgs True is not a whole number"),
    (lambda c: c.subscribe("a", max_bytes=1.5), "max_bytes 1.5 is not a whole number"),
    (lambda c: c.flush(timeout=None), "timeout None is not a number of seconds"),
]


@pytest.mark.parametrize(("call", "text"), WRONG, ids=[row[1] for row in WRONG])
def test_a_wrong_argument_is_refused_before_anything_is_sent(call, text):
    stage = Stage()
    with pytest.raises(InvalidValue, match=text):
        stage.run(call(stage.client))
    assert stage.wire.sent() == b""


@pytest.mark.rule("D-HINT-1")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cb", "option does not exist: 'cb'; iterate the result, or use its run(callback)"),
        ("pending_msgs_limit", "option does not exist: 'pending_msgs_limit'; use max_msgs"),
        ("color", "option does not exist: 'color'"),
    ],
)
def test_a_keyword_of_nats_py_is_answered_with_a_hint(name, text):
    stage = Stage()
    with pytest.raises(InvalidValue) as caught:
        stage.run(stage.client.subscribe("a", **{name: 1}))
    assert str(caught.value) == text
    assert stage.wire.sent() == b""


def test_subscribe_and_flush():
    stage = Stage()
    sub = stage.run(stage.client.subscribe("a.*", queue="q", max_msgs=3, max_bytes=100))
    assert stage.wire.sent() == b"SUB a.* q 1\r\n"
    assert (sub._mailbox.max_msgs, sub._mailbox.max_bytes) == (3, 100)
    stage.run(stage.client.flush())
    assert stage.now() == 0.0


@pytest.mark.rule("DRAIN-3")
def test_drain_closes_and_a_second_one_has_nothing_to_do():
    stage = Stage()
    stage.run(stage.client.subscribe("a"))
    stage.run(stage.client.drain())
    assert stage.client.state == "CLOSED"
    stage.run(stage.client.drain())
    assert stage.client.state == "CLOSED"


def test_close_flushes_and_may_be_repeated():
    stage = Stage()
    stage.run(stage.client.publish("a", b"1"))
    stage.run(stage.client.close())
    assert [pub.data for pub in stage.pubs] == [b"1"]
    assert stage.client.state == "CLOSED"
    stage.run(stage.client.close())
    with pytest.raises(ConnectionClosed):
        stage.run(stage.client.publish("a"))


@pytest.mark.rule("CONN-27")
def test_close_ends_at_its_timeout_if_the_server_does_not_answer():
    stage = Stage()
    stage.serve = lambda: False
    stage.run(stage.client.close(timeout=0.5))
    assert (stage.now(), stage.client.state) == (0.5, "CLOSED")


@pytest.mark.rule("D-CONN-28")
@pytest.mark.parametrize("end", ["close", "drain"])
def test_leaving_the_block_reports_unsent_messages_and_closes(end):
    stage = Stage()
    stage.wire.lost(at=9.0)
    stage.run(stage.client.publish("a"))
    with pytest.raises(MessagesUnconfirmed) as raised:
        stage.run(getattr(stage.client, end)(timeout=0.1))
    assert (raised.value.unsent, raised.value.in_doubt) == (1, 0)
    assert (stage.now(), stage.client.state) == (9.1, "CLOSED")
    stage.run(getattr(stage.client, end)())


@pytest.mark.rule("D-CONN-28")
@pytest.mark.parametrize("end", ["close", "drain"])
def test_a_failure_that_lost_messages_is_reported_at_the_end(end):
    stage = Stage()
    stage.run(stage.client.publish("a"))
    stage.connection.close(1.0)
    with pytest.raises(MessagesUnconfirmed):
        stage.run(getattr(stage.client, end)())
    stage.run(getattr(stage.client, end)())


@pytest.mark.rule("D-CONN-32")
def test_in_a_forked_child_the_end_of_a_block_raises_nothing():
    stage = Stage()

    def now():
        raise ConnectionClosed("of another process")

    async def use():
        async with stage.client:
            stage.now = now

    stage.run(use())
    assert stage.client.state == "CONNECTED"


class Cancelled(BaseException):
    """The exception that a runtime raises in a waiting caller."""


@pytest.mark.rule("D-DRAIN-8", "CONN-27")
@pytest.mark.parametrize(("end", "state"), [("close", "CLOSED"), ("drain", "CONNECTED")])
def test_an_end_that_is_canceled(end, state):
    stage = Stage()

    async def wait(waitable):
        raise Cancelled

    stage.wait = wait
    with pytest.raises(Cancelled):
        stage.run(getattr(stage.client, end)())
    assert stage.client.state == state  # the drain continues without its caller


def test_a_client_is_a_context():
    stage = Stage()

    async def use():
        async with stage.client as client:
            assert client is stage.client

    stage.run(use())
    assert stage.client.state == "CLOSED"


@pytest.mark.rule("D-CONN-29")
@pytest.mark.parametrize("error", [None, ValueError("mine")])
def test_the_end_of_a_block_replaces_no_exception(error):
    stage = Stage()
    stage.wire.lost(at=9.0)

    async def use():
        async with stage.client as client:
            await client.publish("a")
            if error is not None:
                raise error

    with pytest.raises(ValueError if error else MessagesUnconfirmed):
        stage.run(use())
    assert stage.wire.events()[-1] == Closed(None, 1)


@pytest.mark.rule("RECON-5")
def test_force_reconnect_dials_at_once():
    stage = Stage()
    stage.run(stage.client.force_reconnect())
    assert stage.client.state == "DIALING"


@pytest.mark.rule("EVENT-1", "D-EVENT-6")
def test_events_end_with_closed():
    stage = Stage()
    stage.wire.lost(at=9.0).greet().data(PONG)
    stage.run(stage.client.close())
    seen = []

    async def look():
        seen.extend([event async for event in stage.client.events])

    stage.run(look())
    assert [type(event) for event in seen] == [Disconnected, Connected, Closed]
    with pytest.raises(ConnectionClosed, match="no more events"):
        stage.run(stage.client.events.next())


@pytest.mark.rule("D-EVENT-8")
def test_two_loops_over_events_see_all_of_them():
    stage = Stage()
    events = stage.client.events

    async def look():
        one, other = events.__aiter__(), events.__aiter__()
        assert one.__aiter__() is one
        stage.wire.lost(at=9.0).greet().data(PONG)
        first = [type(await one.next()), type(await one.__anext__())]
        await stage.client.close()
        first += [type(event) async for event in one]
        assert first == [type(event) async for event in other]
        assert first == [Disconnected, Connected, Closed]

    stage.run(look())


@pytest.mark.rule("D-EVENT-8")
def test_a_loop_continues_where_the_last_one_stopped():
    stage = Stage()
    events = stage.client.events

    async def look():
        stage.wire.lost(at=9.0).greet().data(PONG)
        async for event in events:
            assert type(event) is Disconnected
            break
        async for event in events:
            assert type(event) is Connected
            break
        stage.wire.lost(at=19.0)
        assert type(await events.next()) is Disconnected
        await stage.client.close()
        assert type(await events.__anext__()) is Closed
        with pytest.raises(StopAsyncIteration):
            await events.__anext__()

    stage.run(look())


@pytest.mark.rule("D-EVENT-10")
@pytest.mark.parametrize("timeout", [None, 0.0, 0.5])
def test_no_event_is_waited_for_after_the_end(timeout):
    stage = Stage()
    stage.run(stage.client.close())
    assert type(stage.run(stage.client.events.next(timeout))) is Closed
    with pytest.raises(ConnectionClosed, match="no more events"):
        stage.run(stage.client.events.next(timeout))
    assert stage.now() == 0.0


def test_no_event_in_time():
    stage = Stage()
    with pytest.raises(TimeoutExpired, match="no event in time"):
        stage.run(stage.client.events.next(timeout=0.25))
    assert stage.now() == 0.25


def test_the_end_of_a_block_may_have_less_time():
    stage = Stage()
    stage.serve = lambda: False
    stage.run(leave(stage.client, Cancelled, 0.5))
    assert (stage.now(), stage.client.state) == (0.5, "CLOSED")
