from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.outbound import (
    HIGH_WATER,
    Outbound,
    Stats,
)
from natsproto.errors import (
    ConnectionClosed,
    InvalidHeader,
    InvalidSubject,
    InvalidValue,
    NotSupported,
    PayloadTooLarge,
    PendingBufferFull,
)
from natsproto.wire.frames import Info


def make(max_pending_out=8 * 1024 * 1024):
    return Outbound(Bus(), max_pending_out)


def online(info=None, **options):
    outbound = make(**options)
    outbound.learn(Info(info or {"headers": True}))
    outbound.release()
    return outbound


def taken(outbound):
    return b"".join(outbound.take())


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
    outbound = online()
    assert outbound.publish(*args, **keywords)
    assert not outbound.publish(*args, **keywords)  # the port was already notified
    assert taken(outbound) == frame * 2
    assert outbound.stats.out_msgs == 2


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
def test_a_rejected_publish_leaves_no_trace(args, keywords, error, held):
    outbound = online({"headers": True, "max_payload": 10})
    outbound.holding = held
    with pytest.raises(error):
        outbound.publish(*args, **keywords)
    assert (taken(outbound), outbound._held) == (b"", [])
    assert outbound.stats == Stats()


@pytest.mark.parametrize("limit", [0, -1, None, "10", 10**30])
def test_a_max_payload_that_is_none_limits_nothing(limit):
    outbound = online({"max_payload": limit})
    outbound.publish("a", b"x" * 100)
    assert len(taken(outbound)) == 113


def test_the_message_about_the_limit_has_the_numbers():
    with pytest.raises(PayloadTooLarge, match=r"11 bytes of headers and payload .* max_payload 10"):
        online({"max_payload": 10}).publish("a", b"x" * 11)


def test_cached_sizes_are_checked_again_when_the_limit_changes():
    outbound = online({"max_payload": 20})
    outbound.publish("a", b"x" * 11)
    outbound.learn(Info({"max_payload": 10}))
    with pytest.raises(PayloadTooLarge):
        outbound.publish("a", b"x" * 11)
    assert taken(outbound) == b"PUB a 11\r\nxxxxxxxxxxx\r\n"


def test_a_server_without_headers():
    outbound = online({"version": "2.1.0"})
    with pytest.raises(NotSupported, match=r"server 2\.1\.0 does not support headers"):
        outbound.publish("a", headers={})
    outbound._info = None  # the server's abilities are not known yet
    outbound.publish("a", headers={})


@pytest.mark.rule("RECON-8")
def test_without_a_connection_a_bounded_number_of_bytes_waits():
    outbound = make(max_pending_out=30)
    frame = b"PUB a 2\r\nhi\r\n"  # 13 bytes
    assert not outbound.publish("a", b"hi")
    assert not outbound.publish("a", b"hi")
    for data in (b"hi", b"x"):
        with pytest.raises(
            PendingBufferFull, match=r"26 bytes are already pending \(max_pending_out 30\)"
        ):
            outbound.publish("a", data)
    assert (taken(outbound), outbound.stats.out_msgs, outbound.held) == (b"", 2, 2)
    outbound.release()
    assert outbound.held == 0
    assert taken(outbound) == frame * 2
    outbound.publish("a", b"hi")
    assert taken(outbound) == frame


@pytest.mark.rule("RECON-8")
def test_the_default_buffer_and_no_buffer():
    outbound = make()
    for _ in range(8):
        outbound.publish("a", b"x" * (1024 * 1024 - 20))
    with pytest.raises(PendingBufferFull):
        outbound.publish("a", b"x" * 1024)
    with pytest.raises(PendingBufferFull):
        make(max_pending_out=0).publish("a")


@pytest.mark.rule("RECON-7")
def test_untaken_frames_return_to_the_front_of_the_queue():
    outbound = online(max_pending_out=30)
    for data in (b"1", b"2", b"3"):
        outbound.publish("a", data)
    outbound.holding = True
    outbound.publish("a", b"4")
    outbound.take_back()
    with pytest.raises(PendingBufferFull):  # only taking back may exceed the limit
        outbound.publish("a", b"5")
    outbound.release()
    assert taken(outbound) == b"".join(b"PUB a 1\r\n%d\r\n" % i for i in (1, 2, 3, 4))


@pytest.mark.rule("D-RECON-14")
@pytest.mark.parametrize("headers", [None, {"K": "v"}])
@pytest.mark.parametrize("reply", ["", "r"])
@pytest.mark.parametrize(("limit", "refused"), [(31, []), (30, [2]), (29, [1, 2]), (5, [0, 1, 2])])
def test_held_publishes_above_the_new_limit_are_not_sent(headers, reply, limit, refused):
    """The limit is for headers and payload together."""
    outbound = make()
    block = 18 if headers else 0
    for size in (29, 30, 31):
        outbound.publish("a.b", b"x" * (size - block), reply, headers)
    held = list(outbound._held)
    outbound.learn(Info({"max_payload": limit, "headers": True}))
    assert outbound.release() == [held[each] for each in refused]
    assert taken(outbound) == b"".join(held[each] for each in range(3) if each not in refused)
    assert outbound.stats.out_msgs == 3 - len(refused)


@pytest.mark.rule("RECON-12")
def test_above_high_water_the_port_is_flushed_and_callers_are_woken_afterwards():
    outbound = online()
    frame = b"x" * (HIGH_WATER // 4)
    flushes = [outbound.publish("a", frame) for _ in range(5)]
    assert flushes == [True, False, False, False, True]
    assert outbound.publish("a", b"")
    assert outbound.publish("a", b"", reply="r")
    assert outbound._bus.ready == []
    outbound.take()
    assert outbound._bus.ready == [outbound.writable]


@pytest.mark.rule("RECON-7")
def test_untaken_frames_are_held_one_by_one():
    outbound = online()
    outbound.publish("a", b"PUB x ")  # neither this
    outbound.add(b"PING\r\n")
    outbound.publish("b", b"1\n", reply="r")  # nor a frame that only looks like a publish
    outbound.publish("c", b"HPUB \n")
    outbound.take_back()
    assert outbound._held == [
        b"PUB a 6\r\nPUB x \r\n",
        b"PUB b r 2\r\n1\n\r\n",
        b"PUB c 6\r\nHPUB \n\r\n",
    ]


def test_a_large_payload_is_not_copied():
    outbound = online()
    large = bytes(64 * 1024 + 1)
    outbound.publish("a", b"1")
    outbound.publish("a", large)
    outbound.publish("a", b"2")
    pieces = outbound.take()
    assert pieces == [b"PUB a 1\r\n1\r\nPUB a 65537\r\n", large, b"\r\nPUB a 1\r\n2\r\n"]
    assert pieces[1] is large


def test_checked_subjects_are_remembered_but_not_forever():
    outbound = online()
    for i in range(3000):
        outbound.publish(f"s.{i}")
        outbound.publish(f"s.{i}")
    assert len(outbound.checked) <= 1024


def test_a_reply_subject_is_opaque():
    outbound = online()
    assert outbound.respond(b"$JS.ACK.\xff.*", b"+ACK")
    assert taken(outbound) == b"PUB $JS.ACK.\xff.* 4\r\n+ACK\r\n"


@pytest.mark.rule("D-CONN-24")
def test_an_answer_of_any_size():
    outbound = online()
    large = b"x" * 5000
    assert outbound.respond(b"r", b"") is True
    assert outbound.respond(b"r", large) is False
    assert taken(outbound) == b"PUB r 0\r\n\r\nPUB r 5000\r\n" + large + b"\r\n"
    outbound.max_payload = 10
    with pytest.raises(PayloadTooLarge):
        outbound.respond(b"r", b"x" * 11)
    assert taken(outbound) == b""


@pytest.mark.rule("D-CONN-24")
def test_short_responses_that_repeat():
    outbound = online()
    for number in range(200):
        outbound.respond(b"r", b"+ACK")
        outbound.respond(b"r", b"%d" % number)
    parts = [b"PUB r 4\r\n+ACK\r\nPUB r %d\r\n%d\r\n" % (len(str(n)), n) for n in range(200)]
    assert taken(outbound) == b"".join(parts)
    assert len(outbound._endings) == 64
    outbound.learn(Info({"max_payload": 3}))
    with pytest.raises(PayloadTooLarge):
        outbound.respond(b"r", b"+ACK")
    outbound.hold()
    outbound.respond(b"r", b"1")
    outbound.respond(b"r", b"1")
    assert (taken(outbound), len(outbound.release())) == (b"", 0)
    assert taken(outbound) == b"PUB r 1\r\n1\r\n" * 2


def test_a_response_needs_a_reply_subject():
    outbound = online()
    with pytest.raises(InvalidSubject, match="no reply subject"):
        outbound.respond(b"", b"+ACK")
    assert taken(outbound) == b""


@pytest.mark.rule("D-CONN-24")
def test_after_the_end():
    outbound = online()
    outbound.holding = True
    outbound._bus.closed = "the connection is closed: why"
    with pytest.raises(ConnectionClosed, match="why"):
        outbound.publish("a")


@pytest.mark.rule("EVENT-7")
def test_reconnects_are_all_connects_but_the_first():
    stats = Stats()
    assert stats.reconnects == 0
    for reconnects in (0, 1, 2):
        stats.connects += 1
        assert stats.reconnects == reconnects


@pytest.mark.rule("D-CONN-33")
@pytest.mark.parametrize("reply", ["", "r"])
def test_a_publish_is_withdrawn_whole(reply):
    outbound = online()
    outbound.publish("a", b"1", reply)
    outbound.withdraw()
    assert (taken(outbound), outbound.stats.out_msgs) == (b"", 0)
    assert outbound.publish("a", b"2")  # the first frame again: the port must be notified
    outbound.publish("a", b"3", reply)
    outbound.withdraw()
    assert (taken(outbound), outbound.stats.out_msgs) == (b"PUB a 1\r\n2\r\n", 1)
    outbound.withdraw()  # the port has taken it in the meantime
    assert outbound.stats.out_msgs == 1


# The queue of frames

LARGE = b"x" * (64 * 1024 + 1)
FULL = b"y" * (64 * 1024)


def filled(*frames):
    outbound = make()
    for frame in frames:
        outbound.add(frame)
    return outbound


@pytest.mark.parametrize(
    ("frames", "pieces"),
    [
        ([], []),
        ([b"a"], [b"a"]),
        ([b"a", b"b", b"c"], [b"abc"]),
        ([FULL, FULL, b"a"], [FULL + FULL + b"a"]),
        ([LARGE], [LARGE]),
        ([b"a", b"b", LARGE, b"c", b"d"], [b"ab", LARGE, b"cd"]),
        ([LARGE, LARGE, b"a"], [LARGE, LARGE, b"a"]),
        ([b"a", LARGE], [b"a", LARGE]),
    ],
)
def test_frames_are_joined_but_for_large_ones(frames, pieces):
    outbound = filled(*frames)
    assert outbound.size == sum(len(frame) for frame in frames)
    assert outbound.take() == pieces
    assert (outbound.size, outbound.take()) == (0, [])


def test_taken_data_belongs_to_the_adapter():
    outbound = make()
    taken = outbound.take()
    outbound.add(b"later")
    assert taken == []


def test_a_large_frame_is_not_copied():
    assert filled(b"a", LARGE).take()[1] is LARGE


def test_the_port_is_notified_of_the_first_frame_and_of_too_many():
    outbound = make()
    assert outbound.add(b"a")
    assert not outbound.add(b"b")
    assert not outbound.add(b"x" * HIGH_WATER)
    assert outbound.add(b"c")
    outbound.take()
    assert outbound.add(b"d")


@pytest.mark.rule("RECON-7")
def test_only_publishes_outlive_the_transport():
    frames = [b"CONNECT {}\r\n", b"PUB a 0\r\n\r\n", b"PING\r\n", b"SUB a 1\r\n", b"PONG\r\n"]
    frames += [b"HPUB a 12 12\r\n\r\n", b"UNSUB 1\r\n", b"PUB b 0\r\n\r\n"]
    outbound = filled(*frames)
    assert outbound._take_publishes() == [frames[1], frames[5], frames[7]]
    assert (outbound.size, outbound.take()) == (0, [])


BLOCK = b"NATS/1.0\r\nA: b\r\n\r\n"
SENT = [  # data, reply, header block, frame
    (b"", b"", None, b"PUB b 0\r\n\r\n"),
    (b"xy", b"r.1", None, b"PUB b r.1 2\r\nxy\r\n"),
    (b"xy", b"r.1", BLOCK, b"HPUB b r.1 18 20\r\n%sxy\r\n" % BLOCK),
    (bytes(70_000), b"r.1", None, b"PUB b r.1 70000\r\n%s\r\n" % bytes(70_000)),
]


@pytest.mark.rule("D-RECON-9")
@pytest.mark.parametrize(("data", "reply", "block", "frame"), SENT)
def test_the_publishes_of_machines(data, reply, block, frame):
    outbound = filled(b"PUB a 0\r\n\r\n")
    taken = outbound.take()
    assert outbound.send(b"b", data, reply, block)  # it is the first
    assert not outbound.send(b"b", data, reply, block)
    assert (outbound.stats.out_msgs, outbound.answerable) == (2, 2)
    assert outbound._take_publishes() == []
    outbound.send(b"b", data, reply, block)
    assert b"".join(outbound.take()) == frame
    assert taken == [b"PUB a 0\r\n\r\n"]


@pytest.mark.parametrize("block", [None, BLOCK])
def test_a_publish_of_a_machine_that_is_too_large(block):
    outbound = filled()
    outbound.max_payload = 3
    with pytest.raises(PayloadTooLarge):
        outbound.send(b"b", b"1234", b"r", block)
    assert (outbound.frames, outbound.stats.out_msgs, outbound.answerable) == ([], 0, 0)
    outbound.add(b"PUB c 0\r\n\r\n")
    assert outbound._take_publishes() == [b"PUB c 0\r\n\r\n"]


@pytest.mark.rule("D-RECON-9")
def test_fleeting_frames_do_not():
    outbound = filled(b"PUB a 0\r\n\r\n")
    outbound.send(b"b", b"", b"", None)
    outbound.add(b"PUB c 0\r\n\r\n")
    assert outbound._take_publishes() == [b"PUB a 0\r\n\r\n", b"PUB c 0\r\n\r\n"]
    outbound.send(b"d", b"", b"", None)
    assert outbound.take() == [b"PUB d 0\r\n\r\n"]
    outbound.add(b"PUB e 0\r\n\r\n")  # at the position of a machine's publish
    assert outbound._take_publishes() == [b"PUB e 0\r\n\r\n"]


@pytest.mark.rule("D-RECON-9")
def test_publishes_of_a_machine_in_one_piece():
    frames = b"PUB b r 0\r\n\r\nPUB b s 0\r\n\r\n"
    outbound = filled()
    assert outbound.send_all(frames, 2)  # it is the first
    assert not outbound.send_all(frames, 2)
    assert (outbound.stats.out_msgs, outbound.answerable, outbound.size) == (4, 4, 2 * len(frames))
    outbound.add(b"PUB c 0\r\n\r\n")
    assert outbound._take_publishes() == [b"PUB c 0\r\n\r\n"]
    outbound.send_all(frames, 2)
    assert outbound.take() == [frames]


@pytest.mark.rule("D-CONN-33")
@pytest.mark.parametrize("pieces", [[b"PUB b 1\r\nx\r\n"], [b"PUB b ", b"1\r\n", b"x", b"\r\n"]])
def test_the_last_frame_is_dropped(pieces):
    outbound = filled(b"PUB a 0\r\n\r\n")
    outbound.frames += pieces
    outbound.size += sum(len(piece) for piece in pieces)
    outbound.withdraw()
    assert (outbound.frames, outbound.size) == ([b"PUB a 0\r\n\r\n"], 11)
    outbound.withdraw()
    assert (outbound.frames, outbound.size) == ([], 0)
    outbound.withdraw()
    assert outbound.stats.out_msgs == -2


# Requests, holding, and counting

HEAD = b"PUB svc "


@pytest.mark.rule("D-REQ-5", "RECON-8")
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    ("block", "frame"),
    [
        (None, b"PUB svc r.1 2\r\nhi\r\n"),
        (b"NATS/1.0\r\n\r\n", b"HPUB svc r.1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"),
    ],
)
def test_a_request_is_sent_or_held_and_not_counted(held, block, frame):
    outbound = online({"headers": True, "max_payload": 14})
    if held:
        outbound.hold()
    outbound.request(HEAD, b"hi", b"r.1", block)
    assert (taken(outbound), outbound._held) == ((b"", [frame]) if held else (frame, []))
    assert (outbound.stats.out_msgs, outbound.accepted) == (1, 0)
    with pytest.raises(PayloadTooLarge):
        outbound.request(HEAD, b"x" * 15, b"r.2", block)
    assert (outbound.stats.out_msgs, outbound.held) == (1, int(held))


@pytest.mark.rule("D-CONN-28")
def test_requests_are_recognized_by_their_reply_subject():
    outbound = make()
    outbound.expect_replies(b"_INBOX.x.")
    outbound.request(HEAD, b"", b"_INBOX.x.1", None)
    assert (outbound.accepted, outbound.passed, outbound.waits) == (0, 0, False)
    outbound.publish("a", b"", "_INBOX.y.1")
    assert (outbound.accepted, outbound.passed, outbound.waits) == (1, 0, True)
    assert [outbound.is_request(frame) for frame in outbound._held] == [True, False]
    outbound.release()
    assert (outbound.passed, outbound.waits) == (1, False)
    outbound.hold()
    outbound.publish("b")
    assert (outbound.count_unsent(), outbound.frames) == (2, [])


@pytest.mark.rule("D-RECON-13")
def test_frames_of_another_process_are_dropped():
    outbound = online()
    outbound.publish("a")
    outbound.hold()
    outbound.publish("b")
    outbound.disclaim()
    assert (outbound.frames, outbound.held, outbound.accepted) == ([], 0, 2)


def test_the_end_wakes_callers_that_wait_for_room():
    outbound = online()
    outbound.publish("a")
    outbound.close()
    assert (outbound.frames, outbound.holding) == ([], True)
    assert outbound._bus.ready == [outbound.writable]


@pytest.mark.rule("RECON-12")
@pytest.mark.parametrize(("size", "woken"), [(HIGH_WATER, False), (HIGH_WATER + 1, True)])
def test_callers_wait_by_the_number_of_bytes(size, woken):
    outbound = online()
    outbound.add(b"x" * size)
    outbound.take()
    assert (outbound.writable in outbound._bus.ready) == woken


@pytest.mark.rule("D-RECON-17")
@pytest.mark.parametrize(
    ("max_pending", "high_water"), [(0, HIGH_WATER), (4096, 4096), (2 * HIGH_WATER, HIGH_WATER)]
)
def test_callers_with_little_memory_wait_earlier(max_pending, high_water):
    outbound = make(max_pending)
    outbound.release()
    outbound.add(b"x" * high_water)
    assert not outbound.add(b"y")
    assert outbound.add(b"z")


@pytest.mark.rule("D-HEALTH-1")
def test_bytes_that_wait_are_counted_with_and_without_a_connection():
    outbound = online({"headers": True})
    assert outbound.pending_bytes == 0
    outbound.publish("a", b"12345")
    assert outbound.pending_bytes > 5
    outbound.take_back()
    assert outbound.pending_bytes == len(b"PUB a 5\r\n12345\r\n")
