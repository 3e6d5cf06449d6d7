from __future__ import annotations

import pytest

from natsproto.connection.effects import Publish
from natsproto.connection.outbox import HIGH_WATER
from natsproto.connection.publishing import Publishing, Stats, reply_of, size_of, subject_of
from natsproto.connection.waitable import Receiver
from natsproto.errors import (
    ConnectionClosed,
    InvalidHeader,
    InvalidSubject,
    InvalidValue,
    NotSupported,
    PayloadTooLarge,
    PendingBufferFull,
)
from natsproto.options import Options
from natsproto.wire.frames import Info, Msg
from tests.connection.support import Wire, msg


def online(info=None, **options):
    publishing = Publishing(Options(**options))
    publishing._learn(Info(info or {"headers": True}))
    publishing._release()
    return publishing


def taken(publishing):
    return b"".join(publishing._outbox.take())


FRAMES = [
    # arguments,                                                  what is sent
    (("a", b"hi"), {}, b"PUB a 2\r\nhi\r\n"),
    (("a",), {}, b"PUB a 0\r\n\r\n"),
    (("a", b"x" * 5000), {}, b"PUB a 5000\r\n" + b"x" * 5000 + b"\r\n"),
    (("a", b"x" * 70_000), {}, b"PUB a 70000\r\n" + b"x" * 70_000 + b"\r\n"),
    (("a.b", bytearray(b"hi")), {}, b"PUB a.b 2\r\nhi\r\n"),
    (("a", memoryview(b"hi")), {"reply": "r"}, b"PUB a r 2\r\nhi\r\n"),
    (("a", b"hi"), {"headers": {"K": "v"}}, b"HPUB a 18 20\r\nNATS/1.0\r\nK: v\r\n\r\nhi\r\n"),
    (("a",), {"headers": [], "reply": "r"}, b"HPUB a r 12 12\r\nNATS/1.0\r\n\r\n\r\n"),
    (("é", b""), {}, b"PUB \xc3\xa9 0\r\n\r\n"),
    (("\udcff", b""), {}, b"PUB \xff 0\r\n\r\n"),
]


@pytest.mark.parametrize(("args", "keywords", "frame"), FRAMES)
def test_what_is_sent(args, keywords, frame):
    publishing = online()
    assert publishing.publish(*args, **keywords)
    assert not publishing.publish(*args, **keywords)  # the port knows already
    assert taken(publishing) == frame * 2
    assert publishing.stats.out_msgs == 2


REFUSED = [
    (("a b",), {}, InvalidSubject),
    (("",), {}, InvalidSubject),
    ((["a"],), {}, InvalidSubject),
    ((None,), {}, InvalidSubject),
    (("a.*",), {}, InvalidSubject),
    (("a", "text"), {}, InvalidValue),
    (("a", b""), {"reply": "r r"}, InvalidSubject),
    (("a", b""), {"headers": {"K": "a\r\nb"}}, InvalidHeader),
    (("a", b"x" * 11), {}, PayloadTooLarge),
    (("a", b"x" * 5), {"headers": {}}, PayloadTooLarge),
    (("a", b"x" * 11), {"reply": "r"}, PayloadTooLarge),
]


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(("args", "keywords", "error"), REFUSED)
def test_what_is_refused_leaves_no_trace(args, keywords, error, held):
    publishing = online({"headers": True, "max_payload": 10})
    publishing._holding = held
    with pytest.raises(error):
        publishing.publish(*args, **keywords)
    assert (taken(publishing), publishing._held) == (b"", [])
    assert publishing.stats == Stats()


@pytest.mark.parametrize("limit", [0, -1, None, "10", 10**30])
def test_a_max_payload_that_is_none_limits_nothing(limit):
    publishing = online({"max_payload": limit})
    publishing.publish("a", b"x" * 100)
    assert len(taken(publishing)) == 113


def test_the_message_about_the_limit_has_the_numbers():
    with pytest.raises(PayloadTooLarge, match=r"11 bytes of headers and payload .* max_payload 10"):
        online({"max_payload": 10}).publish("a", b"x" * 11)


def test_a_size_that_was_fine_before_is_measured_again_when_the_limit_changes():
    publishing = online({"max_payload": 20})
    publishing.publish("a", b"x" * 11)
    publishing._learn(Info({"max_payload": 10}))
    with pytest.raises(PayloadTooLarge):
        publishing.publish("a", b"x" * 11)
    assert taken(publishing) == b"PUB a 11\r\nxxxxxxxxxxx\r\n"


def test_a_server_without_headers():
    publishing = online({"version": "2.1.0"})
    with pytest.raises(NotSupported, match=r"server 2\.1\.0 does not support headers"):
        publishing.publish("a", headers={})
    publishing.info = None  # it is not known yet what the server can
    publishing.publish("a", headers={})


@pytest.mark.rule("RECON-8")
def test_without_a_connection_a_bounded_number_of_bytes_waits():
    publishing = Publishing(Options(max_pending_out=30))
    frame = b"PUB a 2\r\nhi\r\n"  # 13 bytes
    assert not publishing.publish("a", b"hi")
    assert not publishing.publish("a", b"hi")
    for data in (b"hi", b"x"):
        with pytest.raises(
            PendingBufferFull, match=r"26 bytes wait already \(max_pending_out 30\)"
        ):
            publishing.publish("a", data)
    assert (taken(publishing), publishing.stats.out_msgs, publishing.held) == (b"", 2, 2)
    publishing._release()
    assert publishing.held == 0
    assert taken(publishing) == frame * 2
    publishing.publish("a", b"hi")
    assert taken(publishing) == frame


@pytest.mark.rule("RECON-8")
def test_the_buffer_if_not_said_otherwise_and_none_at_all():
    publishing = Publishing(Options())
    for _ in range(8):
        publishing.publish("a", b"x" * (1024 * 1024 - 20))
    with pytest.raises(PendingBufferFull):
        publishing.publish("a", b"x" * 1024)
    with pytest.raises(PendingBufferFull):
        Publishing(Options(max_pending_out=0)).publish("a")


@pytest.mark.rule("RECON-7")
def test_what_was_not_taken_is_taken_back_in_front_of_what_waits():
    publishing = online(max_pending_out=30)
    for data in (b"1", b"2", b"3"):
        publishing.publish("a", data)
    publishing._holding = True
    publishing.publish("a", b"4")
    publishing._take_back()
    with pytest.raises(PendingBufferFull):  # taking back may fill it over the brim, publishing not
        publishing.publish("a", b"5")
    publishing._release()
    assert taken(publishing) == b"".join(b"PUB a 1\r\n%d\r\n" % i for i in (1, 2, 3, 4))


@pytest.mark.rule("RECON-14")
@pytest.mark.parametrize("headers", [None, {"K": "v"}])
@pytest.mark.parametrize("reply", ["", "r"])
@pytest.mark.parametrize(("limit", "refused"), [(31, []), (30, [2]), (29, [1, 2]), (5, [0, 1, 2])])
def test_held_publishes_above_the_new_limit_are_not_sent(headers, reply, limit, refused):
    """The limit is for headers and payload together."""
    publishing = Publishing(Options())
    block = 18 if headers else 0
    for size in (29, 30, 31):
        publishing.publish("a.b", b"x" * (size - block), reply, headers)
    held = list(publishing._held)
    publishing._learn(Info({"max_payload": limit, "headers": True}))
    assert publishing._release() == [held[each] for each in refused]
    assert taken(publishing) == b"".join(held[each] for each in range(3) if each not in refused)
    assert publishing.stats.out_msgs == 3 - len(refused)
    assert [subject_of(frame) for frame in held] == [b"a.b"] * 3
    assert [reply_of(frame) for frame in held] == [reply.encode()] * 3
    assert [size_of(frame) for frame in held] == [29, 30, 31]


@pytest.mark.rule("RECON-12")
def test_above_high_water_callers_wait_and_the_port_is_told():
    publishing = online()
    frame = b"x" * (HIGH_WATER // 4)
    told = [publishing.publish("a", frame) for _ in range(5)]
    assert told == [True, False, False, False, True]
    assert publishing.congested
    assert publishing.publish("a", b"")
    assert publishing.publish("a", b"", reply="r")
    publishing._outbox.take()
    assert not publishing.congested
    assert publishing.writable is publishing._outbox.writable


@pytest.mark.rule("RECON-7")
def test_what_was_not_taken_is_held_frame_by_frame():
    publishing = online()
    publishing.publish("a", b"PUB x ")  # neither this
    publishing._outbox.add(b"PING\r\n")
    publishing.publish("b", b"1\n", reply="r")  # nor that looks like what it is not
    publishing.publish("c", b"HPUB \n")
    publishing._take_back()
    assert publishing._held == [
        b"PUB a 6\r\nPUB x \r\n",
        b"PUB b r 2\r\n1\n\r\n",
        b"PUB c 6\r\nHPUB \n\r\n",
    ]


def test_a_large_payload_is_not_copied():
    publishing = online()
    large = bytes(64 * 1024 + 1)
    publishing.publish("a", b"1")
    publishing.publish("a", large)
    publishing.publish("a", b"2")
    pieces = publishing._outbox.take()
    assert pieces == [b"PUB a 1\r\n1\r\nPUB a 65537\r\n", large, b"\r\nPUB a 1\r\n2\r\n"]
    assert pieces[1] is large


def test_checked_subjects_are_remembered_but_not_for_ever():
    publishing = online()
    for i in range(3000):
        publishing.publish(f"s.{i}")
        publishing.publish(f"s.{i}")
    assert len(publishing._checked) <= 1024


def test_a_reply_subject_is_opaque():
    publishing = online()
    assert publishing.respond(b"$JS.ACK.\xff.*", b"+ACK")
    assert taken(publishing) == b"PUB $JS.ACK.\xff.* 4\r\n+ACK\r\n"


@pytest.mark.rule("CONN-24")
def test_an_answer_of_any_size():
    publishing = online()
    large = b"x" * 5000
    assert publishing.respond(b"r", b"") is True
    assert publishing.respond(b"r", large) is False
    assert taken(publishing) == b"PUB r 0\r\n\r\nPUB r 5000\r\n" + large + b"\r\n"
    publishing._max_payload = 10
    with pytest.raises(PayloadTooLarge):
        publishing.respond(b"r", b"x" * 11)
    assert taken(publishing) == b""


def test_nothing_is_sent_to_nobody():
    publishing = online()
    with pytest.raises(InvalidSubject, match="no reply subject"):
        publishing.respond(b"", b"+ACK")
    assert taken(publishing) == b""


@pytest.mark.rule("CONN-24")
def test_after_the_end():
    publishing = online()
    publishing._holding = True
    publishing.closed = "the connection is closed: why"
    for call in (publishing.publish, publishing._check_open):
        with pytest.raises(ConnectionClosed, match="why"):
            call(*["a"] * (call == publishing.publish))


class Machine(Receiver):
    """Orders one publish for each message, and notes what came back."""

    def __init__(self):
        super().__init__()
        self.orders = []
        self.back = []

    def order(self, data=b"x"):
        self.orders.append(Publish(b"pull", data, b"_INBOX.1", None))
        self.busy.append(self)

    def receive(self, msg: Msg, now: float) -> bool:
        self.order(msg.data)
        return False

    def take_orders(self):
        taken, self.orders = self.orders, []
        return taken

    def unsent(self, order, error):
        self.back.append((order.data, type(error)))

    def connected(self, now):
        self.order(b"again")


@pytest.mark.rule("RECON-9")
def test_what_a_machine_orders_is_sent_and_counted():
    publishing = online()
    machine = Machine()
    machine.order(b"1")
    machine.order(b"2")
    publishing.perform(machine)
    publishing.perform(machine)
    assert taken(publishing) == b"".join(b"PUB pull _INBOX.1 1\r\n%d\r\n" % i for i in (1, 2))
    assert publishing.stats.out_msgs == 2


@pytest.mark.rule("RECON-9")
def test_orders_neither_wait_for_a_connection_nor_outlive_one():
    publishing = Publishing(Options(max_pending_out=0))
    machine = Machine()
    machine.order()
    publishing.perform(machine)
    publishing._release()
    assert taken(publishing) == b""
    machine.order()
    publishing.perform(machine)
    publishing._take_back()
    publishing._release()
    assert (taken(publishing), machine.back) == (b"", [])


@pytest.mark.rule("RECON-9", "CONN-20")
def test_an_order_that_cannot_be_sent_goes_back_and_harms_nobody():
    wire = Wire().up(max_payload=5)
    machine = Machine()
    wire.connection.subscribe("a", machine)
    wire.connection._outbox.clear()
    wire.data(msg("a", 1, b"12345") + msg("a", 1, b"ok"))
    assert wire.sent() == b"PUB pull _INBOX.1 5\r\n12345\r\nPUB pull _INBOX.1 2\r\nok\r\n"
    machine.order(b"123456")
    wire.timer()
    assert (wire.sent(), machine.back) == (b"", [(b"123456", PayloadTooLarge)])


@pytest.mark.rule("RECON-9")
def test_a_machine_orders_anew_when_it_is_told_of_a_connection():
    wire = Wire().up()
    machine = Machine()
    wire.connection.subscribe("a", machine)
    wire.writable = False
    wire.data(msg("a", 1, b"old")).lost()
    wire.writable = True
    wire.greet().sent()
    assert wire.data(b"PONG\r\n").sent() == b"SUB a 1\r\nPUB pull _INBOX.1 5\r\nagain\r\n"


@pytest.mark.rule("EVENT-7")
def test_reconnects_are_all_connects_but_the_first():
    stats = Stats()
    assert stats.reconnects == 0
    for reconnects in (0, 1, 2):
        stats.connects += 1
        assert stats.reconnects == reconnects


@pytest.mark.rule("CONN-33")
@pytest.mark.parametrize("reply", ["", "r"])
def test_a_publish_is_withdrawn_whole(reply):
    publishing = online()
    publishing.publish("a", b"1", reply)
    publishing.withdraw()
    assert (taken(publishing), publishing.stats.out_msgs) == (b"", 0)
    assert publishing.publish("a", b"2")  # the first again: the port is to be told
    publishing.publish("a", b"3", reply)
    publishing.withdraw()
    assert (taken(publishing), publishing.stats.out_msgs) == (b"PUB a 1\r\n2\r\n", 1)
    publishing.withdraw()  # the port has taken it meanwhile
    assert publishing.stats.out_msgs == 1


@pytest.mark.rule("CONN-36")
def test_what_a_later_info_leaves_out_stays():
    publishing = online({"headers": True, "max_payload": 9, "version": "2", "ldm": True})
    publishing._learn(Info({"max_payload": 5, "version": None}))
    info = publishing.info
    assert info is not None
    assert (info.headers, info.max_payload, info.version, info.ldm) == (True, 5, "2", False)
    publishing._learn(Info({}), first=True)
    assert publishing.info == Info({})
