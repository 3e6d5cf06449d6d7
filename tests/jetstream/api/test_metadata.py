from __future__ import annotations

import json

import pytest

from jetstream.api.metadata import Metadata, read_consumer_seq, read_metadata, read_place
from jetstream.errors import NotJetStreamMessage
from natsproto import Msg, Parser
from tests.core import ROOT


def replies(transcript: str) -> list[bytes]:
    """Return the reply subjects of the messages that consumers deliver in this transcript."""
    frames = json.loads((ROOT / "tests" / "vectors" / transcript).read_text())["frames"]
    found = []
    for frame in frames:
        if frame["dir"] == "<" and frame["latin1"].startswith("MSG"):
            line = frame["latin1"].partition("\r\n")[0].encode()
            size = int(line.split(b" ")[-1])
            [msg] = Parser().feed(line + b"\r\n" + bytes(size) + b"\r\n")
            assert isinstance(msg, Msg)
            if msg.raw_reply:
                found.append(msg.raw_reply)
    return found


TRANSCRIPTS = [
    # transcript,                  place, stream, consumer, domain, delivered, seqs, time, pending
    ("50-acks.json", 0, ("AK", "C", "", 1, 1, 1, 1794786934375257367, 5)),
    ("50-acks.json", 5, ("AK", "C", "", 2, 2, 6, 1794786934419224887, 1)),
    ("88-jsack-v2.json", 0, ("S", "C", "", 1, 1, 1, 1794787233289898182, 1)),
    ("88-jsack-v2.json", 1, ("S", "C", "", 1, 2, 2, 1794787233290112995, 0)),
    ("89-jsack-v2-domain-fc.json", 0, ("S", "C", "hub", 1, 1, 1, 1794787234238158801, 149)),
]


@pytest.mark.rule("META-1", "META-3")
@pytest.mark.parametrize(("transcript", "place", "fields"), TRANSCRIPTS)
def test_replies_of_real_servers(transcript, place, fields):
    assert read_metadata(replies(transcript)[place]) == Metadata(*fields)


V1 = b"$JS.ACK.S.C.3.40.50.1700000000000000001.7"
V2 = b"$JS.ACK.hub.HASH.S.C.3.40.50.1700000000000000001.7"


@pytest.mark.rule("META-1")
@pytest.mark.parametrize(
    ("reply", "domain"),
    [
        (V1, ""),
        (V2, "hub"),
        (V2 + b".RANDOM", "hub"),
        (V2 + b".more.and.more", "hub"),
        (V2.replace(b".hub.", b"._."), ""),
    ],
)
def test_both_forms(reply, domain):
    assert read_metadata(reply) == Metadata("S", "C", domain, 3, 40, 50, 1700000000000000001, 7)


@pytest.mark.rule("META-1")
def test_names_and_numbers_of_any_kind():
    most = 2**64 - 1
    found = read_metadata(b"$JS.ACK.\xc3\xa9.\xff.1.%d.%d.0.0" % (most, most))
    assert (found.stream, found.consumer, found.stream_seq) == ("é", "\udcff", most)


@pytest.mark.rule("META-2")
@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"_INBOX.x",
        b"$JS.ACK",
        b"$JS.API.S.C.3.40.50.1700.7",
        b"X" + V1,
        V1.rpartition(b".")[0],  # 8 tokens
        V1 + b".x",  # 10 tokens
        V2.rpartition(b".")[0],
        V1.replace(b".3.", b".three."),
        V1.replace(b".40.", b".-40."),
        V1.replace(b".50.", b".."),
        V1.replace(b".50.", b".5_0."),
        V1.replace(b".50.", b".%s." % (b"9" * 21)),
        V1.replace(b".50.", b".%s." % (b"9" * 5000)),
        V1[:-1] + b"\xb2",
        V2[:-1] + b"x",
    ],
)
def test_other_subjects_are_rejected(reply):
    with pytest.raises(NotJetStreamMessage, match="reply b"):
        read_metadata(reply)


PLACES = [
    (b"$JS.ACK.S.C.1.2.3.4.5", (b"C", 2, 3)),
    (b"$JS.ACK._.h.S.C.1.2.3.4.5", (b"C", 2, 3)),
    (b"$JS.ACK._.h.S.C.1.2.3.4.5.more.and.more", (b"C", 2, 3)),
    (b"$JS.ACK.h.S.C.1.2.3.4.5", None),
    (b"$JS.ACK.C.1.2.3.4.5", None),
    (b"$JS.ACK.S.C.1.2.x.4.5", None),
    (b"$JS.ACK.S.C.1.2.%s.4.5" % (b"3" * 21), None),
    (b"$JS.FC.S.C.1.2.3.4.5", None),
    (b"_INBOX.a", None),
    (b"", None),
]


@pytest.mark.rule("PUSH-10", "ORDERED-4")
@pytest.mark.parametrize(("reply", "place"), PLACES)
def test_partial_reads_for_machines(reply, place):
    assert read_place(reply) == place
    assert read_consumer_seq(reply) == (place and place[2])
