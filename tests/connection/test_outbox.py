from __future__ import annotations

import pytest

from natsproto.connection.outbox import HIGH_WATER, Outbox

LARGE = b"x" * (64 * 1024 + 1)
FULL = b"y" * (64 * 1024)


def filled(*frames):
    outbox = Outbox()
    for frame in frames:
        outbox.add(frame)
    return outbox


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
    outbox = filled(*frames)
    assert outbox.size == sum(len(frame) for frame in frames)
    assert outbox.take() == pieces
    assert (outbox.size, outbox.take()) == (0, [])


def test_what_was_taken_belongs_to_the_taker():
    outbox = Outbox()
    taken = outbox.take()
    outbox.add(b"later")
    assert taken == []


def test_a_large_frame_is_not_copied():
    assert filled(b"a", LARGE).take()[1] is LARGE


def test_the_port_is_told_of_the_first_frame_and_of_too_many():
    outbox = Outbox()
    assert outbox.add(b"a")
    assert not outbox.add(b"b")
    assert not outbox.add(b"x" * HIGH_WATER)
    assert outbox.add(b"c")
    outbox.take()
    assert outbox.add(b"d")


@pytest.mark.rule("RECON-7")
def test_only_publishes_outlive_the_transport():
    frames = [b"CONNECT {}\r\n", b"PUB a 0\r\n\r\n", b"PING\r\n", b"SUB a 1\r\n", b"PONG\r\n"]
    frames += [b"HPUB a 12 12\r\n\r\n", b"UNSUB 1\r\n", b"PUB b 0\r\n\r\n"]
    outbox = filled(*frames)
    assert outbox.only_publishes() == [frames[1], frames[5], frames[7]]
    assert (outbox.size, outbox.take()) == (0, [])


@pytest.mark.rule("RECON-9")
def test_fleeting_frames_do_not():
    outbox = filled(b"PUB a 0\r\n\r\n")
    outbox.add(b"PUB b 0\r\n\r\n", fleeting=True)
    outbox.add(b"PUB c 0\r\n\r\n")
    assert outbox.only_publishes() == [b"PUB a 0\r\n\r\n", b"PUB c 0\r\n\r\n"]
    outbox.add(b"PUB d 0\r\n\r\n", fleeting=True)
    assert outbox.take() == [b"PUB d 0\r\n\r\n"]
    outbox.add(b"PUB e 0\r\n\r\n")  # in the place where a fleeting one was
    assert outbox.only_publishes() == [b"PUB e 0\r\n\r\n"]


@pytest.mark.rule("CONN-33")
@pytest.mark.parametrize("pieces", [[b"PUB b 1\r\nx\r\n"], [b"PUB b ", b"1\r\n", b"x", b"\r\n"]])
def test_the_last_frame_is_dropped(pieces):
    outbox = filled(b"PUB a 0\r\n\r\n")
    outbox.frames += pieces
    outbox.size += sum(len(piece) for piece in pieces)
    assert outbox.drop_last()
    assert (outbox.frames, outbox.size) == ([b"PUB a 0\r\n\r\n"], 11)
    assert outbox.drop_last()
    assert (outbox.frames, outbox.size) == ([], 0)
    assert not outbox.drop_last()
