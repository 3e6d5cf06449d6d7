"""Outbound at its limits: exact sizes, and the last value on either side of each limit."""

from __future__ import annotations

import pytest

from natsproto.connection.bus import Bus
from natsproto.connection.outbound import HIGH_WATER, LARGE, Outbound, Stats
from natsproto.errors import PayloadTooLarge, PendingBufferFull
from natsproto.wire.frames import Info


def online(max_pending=8 * 1024 * 1024, **info):
    outbound = Outbound(Bus(), max_pending)
    outbound.learn(Info({"headers": True, **info}))
    outbound.release()
    return outbound


def test_the_limits():
    assert (HIGH_WATER, LARGE) == (262_144, 65_536)
    assert Outbound(Bus(), 0).max_payload == 1 << 62


@pytest.mark.rule("EVENT-7")
def test_counters_start_at_zero():
    stats = Stats()
    assert [getattr(stats, name) for name in Stats.__slots__] == [0] * 6


# Every command that queues a frame, and the size that it adds: exact for whole frames. A publish
# in pieces counts 8 bytes for the size, its line end and that of the payload.
COMMANDS = {
    "publish": (lambda outbound: outbound.publish("a", b"12345"), 6 + 5 + 8),
    "publish with a reply": (lambda outbound: outbound.publish("a", b"12345", "r"), 18),
    "respond": (lambda outbound: outbound.respond(b"r", b"+ACK"), 15),
    "send": (lambda outbound: outbound.send(b"a", b"12345", b"r", None), 8 + 5 + 8),
    "send without a reply": (lambda outbound: outbound.send(b"a", b"12345", b"", None), 6 + 5 + 8),
    "add": (lambda outbound: outbound.add(b"PING\r\n"), 6),
}


@pytest.mark.rule("RECON-12")
@pytest.mark.parametrize("name", COMMANDS)
def test_every_frame_counts_toward_high_water(name):
    command, size = COMMANDS[name]
    outbound = online()
    # The second and third response are made by a shorter path.
    assert [command(outbound) for _ in range(3)] == [True, False, False]
    assert outbound.size == 3 * size
    outbound.take()
    assert (command(outbound), outbound.size) == (True, size)


@pytest.mark.rule("RECON-12")
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("waiting", "flush"), [(HIGH_WATER, False), (HIGH_WATER + 1, True)])
def test_the_port_is_flushed_above_high_water_and_not_at_it(name, waiting, flush):
    command, _ = COMMANDS[name]
    outbound = online()
    command(outbound)
    outbound.take()
    outbound.add(b"x" * waiting)
    assert command(outbound) is flush


@pytest.mark.rule("D-CONN-24")
def test_every_response_is_counted_once():
    outbound = online()
    for count in (1, 2, 3):
        outbound.respond(b"r", b"+ACK")
        assert outbound.stats.out_msgs == count


# Caches


def test_a_full_cache_of_subjects_is_cleared():
    outbound = online()
    counts = []
    for number in range(1026):
        outbound.check_subject(f"s.{number}")
        counts.append(len(outbound.checked))
    assert counts == [*range(1, 1025), 1, 2]


@pytest.mark.parametrize(("size", "remembered"), [(4095, [4095]), (4096, []), (4097, [])])
def test_size_lines_of_small_payloads_are_remembered(size, remembered):
    outbound = online()
    outbound.publish("a", bytes(size))
    assert list(outbound._sizes) == remembered


@pytest.mark.parametrize(("size", "remembered"), [(15, 1), (16, 1), (17, 0)])
def test_endings_of_short_responses_are_remembered(size, remembered):
    outbound = online()
    outbound.respond(b"r", bytes(size))
    assert len(outbound._endings) == remembered


# Payloads and buffers that just fit

PAYLOADS = {
    "publish": lambda outbound, data: outbound.publish("a", data),
    "publish with a reply": lambda outbound, data: outbound.publish("a", data, "r"),
    "respond": lambda outbound, data: outbound.respond(b"r", data),
    "request": lambda outbound, data: outbound.request(b"PUB a ", data, b"r.1", None),
    "send": lambda outbound, data: outbound.send(b"a", data, b"r", None),
}


@pytest.mark.rule("D-CONN-24")
@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize("limit", [1, 10])
def test_the_largest_payload_is_sent(name, limit):
    outbound = online(max_payload=limit)
    PAYLOADS[name](outbound, b"x" * limit)
    assert outbound.take()[0].endswith(b" %d\r\n%s\r\n" % (limit, b"x" * limit))
    with pytest.raises(PayloadTooLarge):
        PAYLOADS[name](outbound, b"x" * (limit + 1))
    assert (outbound.frames, outbound.stats.out_msgs) == ([], 1)


@pytest.mark.rule("RECON-8")
@pytest.mark.parametrize(("room", "fits"), [(13, True), (12, False)])
def test_the_last_byte_of_the_buffer_is_used(room, fits):
    outbound = Outbound(Bus(), room)
    if fits:
        outbound.publish("a", b"hi")  # 13 bytes
    else:
        with pytest.raises(PendingBufferFull):
            outbound.publish("a", b"hi")
    assert outbound.held == int(fits)


@pytest.mark.rule("RECON-12")
def test_the_loss_of_a_transport_wakes_callers_that_wait_for_room():
    outbound = online()
    outbound.publish("a", b"1")
    outbound.take_back()
    assert outbound._bus.ready == [outbound.writable]
    assert outbound._held == [b"PUB a 1\r\n1\r\n"]


def test_a_frame_that_is_just_not_large_is_joined_with_others():
    full, large = b"y" * LARGE, b"x" * (LARGE + 1)
    outbound = online()
    for frame in (b"a", full, large, full, b"b"):
        outbound.add(frame)
    assert outbound.take() == [b"a" + full, large, full + b"b"]
