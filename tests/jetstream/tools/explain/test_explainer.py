"""Sentences for the frames of JetStream: each is compared as a whole."""

from __future__ import annotations

import base64
import json

import pytest

from jetstream.tools.explain import Explainer, Note, wire_text
from natsproto import Parser, ProtocolError
from natsproto.wire.frames import Msg, Pub
from tests.core import ROOT

API = b"$JS.API."
NEXT = b"$JS.API.CONSUMER.MSG.NEXT.ORDERS.worker"
ACK = b"$JS.ACK.ORDERS.worker.1.7.3.1700000000000000000.4"
VECTORS = sorted((ROOT / "tests" / "vectors").glob("*.json"))


def block(*lines):
    return "\r\n".join(["NATS/1.0", *lines, "", ""]).encode()


def status(first, *lines):
    return "\r\n".join([f"NATS/1.0 {first}", *lines, "", ""]).encode()


def pull(body, headers=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Pub(NEXT, b"_INBOX.1", data, headers)


START = "The client pulls from consumer `worker` of stream `ORDERS`"
PULLS = [
    ({"batch": 1}, "pull: batch 1", ": at most 1 message. It waits without a limit."),
    (
        {"batch": 5, "no_wait": True},
        "pull: batch 5, no_wait",
        ": at most 5 messages. It takes only messages that are available now.",
    ),
    (
        {"batch": 5, "no_wait": True, "expires": 1_500_000_000},
        "pull: batch 5, no_wait, expires 1.5 s",
        ": at most 5 messages. It waits up to 1.5 s, but only for the first message.",
    ),
    (
        {"batch": 5, "expires": 30_000_000_000, "idle_heartbeat": 500_000_000},
        "pull: batch 5, expires 30 s, heartbeat 0.5 s",
        ": at most 5 messages. It waits up to 30 s. While it waits, the server sends a heartbeat "
        "every 0.5 s.",
    ),
    (
        {"batch": 5, "max_bytes": 100, "group": "A", "priority": 1, "id": "pin"},
        "pull: batch 5, max_bytes 100, group A, priority 1, id pin",
        ": at most 5 messages, of at most 100 bytes in all, as a member of priority group `A`, "
        "with priority 1, with pin id `pin`. It waits without a limit.",
    ),
    ({"batch": -5}, "pull: batch -5", ": a batch of `-5`. It waits without a limit."),
    (b"", "pull", ", with an empty body, which stands for one message."),
    (b"3", "pull", ", in the old form, with the body `3`."),
    (b'{"batch":', "pull", ", with a body that is not valid JSON."),
]


@pytest.mark.parametrize(("body", "label", "text"), PULLS, ids=str)
def test_pull_requests(body, label, text):
    assert Explainer().sent(pull(body)) == Note("pull request", label, START + text)


def test_a_pull_request_with_headers():
    note = Explainer().sent(pull({"batch": 1}, block("Nats-Required-Api-Level: 2")))
    assert note.text.endswith("It waits without a limit. The server must have API level 2.")


STATUSES = [
    ("404 No Messages", [], "No more messages are available now, so the pull ends."),
    (
        "408 Request Timeout",
        ["Nats-Pending-Messages: 3", "Nats-Pending-Bytes: 0"],
        "The pull has expired. It still lacked 3 of its messages.",
    ),
    (
        "408 Request Timeout",
        ["Nats-Pending-Messages: 3", "Nats-Pending-Bytes: 99"],
        "The pull has expired. It still lacked 3 of its messages, and 99 of its bytes.",
    ),
    (
        "409 Batch Completed",
        ["Nats-Pending-Messages: 0", "Nats-Pending-Bytes: 99"],
        "The pull has delivered its batch.",
    ),
    (
        "409 Consumer Deleted",
        [],
        "The consumer was deleted, and the pull ends.",
    ),
    ("499 Full Moon", [], "This status is not known here."),
]


@pytest.mark.parametrize(("first", "lines", "text"), STATUSES)
def test_statuses_of_a_pull(first, lines, text):
    explainer = Explainer()
    explainer.sent(pull({"batch": 5}))
    note = explainer.received(Msg(b"_INBOX.1", 1, headers=status(first, *lines)))
    assert note == Note("status", first, f"{first}. {text}")


def test_no_responders_to_a_pull_and_to_a_call():
    explainer = Explainer()
    explainer.sent(pull({"batch": 5}))
    explainer.sent(Pub(API + b"INFO", b"_INBOX.2"))
    pulled = explainer.received(Msg(b"_INBOX.1", 1, headers=status("503")))
    assert pulled.text == (
        "503 No Responders. Nothing serves the pull: the consumer does not exist, or it has no "
        "leader."
    )
    called = explainer.received(Msg(b"_INBOX.2", 1, headers=status("503")))
    assert called.text == (
        "503 No Responders. No one is subscribed to receive the request to `$JS.API.INFO`."
    )


HEARTBEATS = [
    (["Nats-Last-Consumer: 0", "Nats-Last-Stream: 0"], "Nothing has been delivered yet."),
    (
        ["Nats-Last-Consumer: 3", "Nats-Last-Stream: 7"],
        "The last delivery was number 3, of message 7.",
    ),
    (
        ["Nats-Last-Consumer: 3", "Nats-Last-Stream: 7", "Nats-Consumer-Stalled: $JS.FC.x"],
        "The last delivery was number 3, of message 7. The flow control request `$JS.FC.x` is "
        "still unanswered.",
    ),
]


@pytest.mark.parametrize(("lines", "text"), HEARTBEATS)
def test_heartbeats_of_a_push_consumer(lines, text):
    note = Explainer().received(Msg(b"to.me", 1, headers=status("100 Idle Heartbeat", *lines)))
    start = "100 Idle Heartbeat. There is nothing to deliver, but the server is alive."
    assert note == Note("heartbeat", "100 Idle Heartbeat", f"{start} {text}")


def test_flow_control():
    explainer = Explainer()
    request = Msg(b"to.me", 1, b"$JS.FC.x", headers=status("100 FlowControl Request"))
    assert explainer.received(request).kind == "flow control"
    note = explainer.sent(Pub(b"$JS.FC.x"))
    assert note == Note(
        "flow control",
        "flow control response",
        "The client answers the flow control request: it has read all earlier messages.",
    )


@pytest.mark.parametrize("first", ["100 Idle Heartbeat", "409 Consumer Deleted"])
def test_a_status_line_of_a_publisher_is_a_message(first):
    assert Explainer().received(Msg(b"any", 1, headers=status(first))).kind == "message"


ACKS = [
    (b"+ACK", "+ACK", "The client acknowledges %s: it is done."),
    (b"", "+ACK", "The client acknowledges %s: it is done."),
    (b"-NAK", "-NAK", "The client rejects %s; the server redelivers it now."),
    (
        b'-NAK {"delay":300000000}',
        "-NAK",
        "The client rejects %s; the server redelivers it in 0.3 s.",
    ),
    (b"+WPI", "+WPI", "The client is still working on %s: its ack wait starts again."),
    (b"+TERM", "+TERM", "The client terminates %s: it is not redelivered."),
    (
        b"+TERM 5 % bad",
        "+TERM",
        "The client terminates %s, for the reason `5 % bad`: it is not redelivered.",
    ),
    (b"+NXT", "+NXT", "The client acknowledges %s and pulls the next one."),
    (b"+???", "ack", "The client sends an acknowledgment of unknown kind for %s."),
]


@pytest.mark.parametrize(("data", "label", "text"), ACKS)
def test_acknowledgments(data, label, text):
    what = "message 7 of stream `ORDERS`"
    assert Explainer().sent(Pub(ACK, b"", data)) == Note("ack", label, text.replace("%s", what))


def test_a_double_ack_and_its_confirmation():
    explainer = Explainer()
    note = explainer.sent(Pub(ACK, b"_INBOX.9", b"+ACK"))
    assert note.text.endswith("it is done. It asks the server to confirm that.")
    assert explainer.received(Msg(b"_INBOX.9", 1)) == Note(
        "confirmation", "ack confirmed", "The server confirms the ack."
    )


def test_an_ack_subject_of_another_shape():
    assert Explainer().sent(Pub(b"$JS.ACK.x", b"", b"+ACK")).text == (
        "The client acknowledges a message: it is done."
    )
    assert Explainer().received(Msg(b"a", 1, b"$JS.ACK.x")).kind == "message"


DELIVERIES = [
    (
        ACK,
        None,
        "message 7",
        "Message 7 of stream `ORDERS` (`orders.new`, 2 bytes), delivery 3 of consumer `worker`; "
        "4 pending.",
    ),
    (
        b"$JS.ACK.hub.hash.ORDERS.worker.2.7.3.1700000000000000000.0",
        None,
        "message 7 (2nd delivery)",
        "Message 7 of stream `ORDERS` (`orders.new`, 2 bytes), delivery 3 of consumer `worker` in "
        "domain `hub`. It is the 2nd time that it is delivered; none pending.",
    ),
    (
        ACK,
        block("Nats-Msg-Id: 1", "Nats-Pin-Id: pin"),
        "message 7",
        "Message 7 of stream `ORDERS` (`orders.new`, 2 bytes), delivery 3 of consumer `worker`; "
        "4 pending. The pin id is `pin`.",
    ),
]


@pytest.mark.parametrize(("reply", "headers", "label", "text"), DELIVERIES)
def test_deliveries(reply, headers, label, text):
    note = Explainer().received(Msg(b"orders.new", 1, reply, b"{}", headers))
    assert note == Note("delivery", label, text)


@pytest.mark.parametrize(
    ("times", "text"), [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (21, "21st")]
)
def test_how_often_a_message_was_delivered(times, text):
    reply = ACK.replace(b"worker.1.", b"worker.%d." % times)
    label = Explainer().received(Msg(b"a", 1, reply)).label
    assert label == f"message 7 ({text} delivery)"


CALLS = [
    ("STREAM.CREATE.S", "creates stream `S`", "Stream `S` exists now."),
    ("CONSUMER.CREATE.S.C.a.b", "creates consumer `C` of stream `S`", "Consumer `C` exists now."),
    ("CONSUMER.CREATE.S", "creates a consumer of stream `S`", "Stream `S` has a new consumer."),
    ("STREAM.NAMES", "lists the names of streams", "The list."),
    ("FUTURE.CALL", "calls `FUTURE.CALL`", "The call succeeded."),
    ("STREAM.INFO", "calls `STREAM.INFO`", "The call succeeded."),
]


@pytest.mark.parametrize(("endpoint", "words", "done"), CALLS)
@pytest.mark.parametrize("prefix", [b"$JS.API.", b"$JS.hub.API."])
def test_calls(endpoint, words, done, prefix):
    explainer = Explainer()
    note = explainer.sent(Pub(prefix + endpoint.encode(), b"_INBOX.1"))
    assert (note.kind, note.text) == ("call", f"The client {words}.")
    assert explainer.received(Msg(b"_INBOX.1", 1, b"", b"{}")).text == done


@pytest.mark.parametrize("subject", [b"$JS.API", b"$JS.hub.API", b"$JS.hub.other.x"])
def test_subjects_that_are_not_calls(subject):
    assert Explainer().sent(Pub(subject)).kind == "publish"


RESPONSES = [
    (
        {"error": {"code": 404, "err_code": 10014, "description": "consumer not found"}},
        Note(
            "error",
            "error 10014",
            "The server refuses: error 10014 (code 404), consumer not found.",
        ),
    ),
    (
        {"error": {"code": 500, "description": "no"}},
        Note("error", "error 500", "The server refuses: error 500, no."),
    ),
    (
        {"success": True, "purged": 3},
        Note("response", "response", "Stream `S` is purged. It removed 3 messages."),
    ),
]


@pytest.mark.parametrize(("body", "note"), RESPONSES)
def test_responses_to_calls(body, note):
    explainer = Explainer()
    explainer.sent(Pub(API + b"STREAM.PURGE.S", b"_INBOX.1"))
    assert explainer.received(Msg(b"_INBOX.1", 1, b"", json.dumps(body).encode())) == note


def test_a_response_that_is_not_json():
    explainer = Explainer()
    explainer.sent(Pub(API + b"STREAM.PURGE.S", b"_INBOX.1"))
    for data in (b"-ERR", b"[]", b"\xff"):
        assert explainer.received(Msg(b"_INBOX.1", 1, b"", data)).kind == "response"


ACKED = [
    (
        {"stream": "S", "seq": 3},
        Note(
            "publish ack",
            "ack: sequence 3",
            "The stream has stored the message: sequence 3 of stream `S`.",
        ),
    ),
    (
        {"stream": "S", "seq": 3, "duplicate": True},
        Note(
            "publish ack",
            "ack: duplicate of 3",
            "The stream knows this id already, from sequence 3 of stream `S`: it stores nothing.",
        ),
    ),
    (
        {"other": 1},
        Note("response", "response", "A message of 12 bytes in response to the request to `a`."),
    ),
]


@pytest.mark.parametrize(("body", "note"), ACKED)
def test_publish_acks(body, note):
    explainer = Explainer()
    explainer.sent(Pub(b"a", b"_INBOX.1"))
    assert explainer.received(Msg(b"_INBOX.1", 1, b"", json.dumps(body).encode())) == note


PUBLISHED = [
    (b"a", block("Nats-Msg-Id: 1"), "The id `1` lets the stream recognize a duplicate."),
    (b"a", block("Nats-Batch-Commit: 1"), "It commits the batch."),
    (b"a", b"garbage", ""),
    (b"$KV.cfg.a.b", None, "That is key `a.b` of bucket `cfg`."),
    (
        b"$KV.cfg.a",
        block("KV-Operation: DEL"),
        "That is key `a` of bucket `cfg`. The key-value operation is DEL.",
    ),
    (b"$O.box.C.nuid", None, "That is a chunk of an object in bucket `box`."),
    (b"$O.box.M.name", None, "That is a description of an object in bucket `box`."),
    (b"$O.box", None, ""),
]


@pytest.mark.parametrize(("subject", "headers", "text"), PUBLISHED)
def test_publishes(subject, headers, text):
    note = Explainer().sent(Pub(subject, b"", b"", headers))
    start = f"The client publishes an empty message to `{subject.decode()}`."
    assert note.text == f"{start} {text}".strip()


STORED = [
    (b"$KV.cfg.a.b", None, "put key a.b"),
    (b"$KV.cfg.a", block("KV-Operation: DEL"), "del key a"),
    (b"$O.box.C.nuid", None, "chunk of an object"),
    (b"$O.box.M.name", None, "description of an object"),
    (b"$KV.cfg", None, "PUB $KV.cfg"),
]


@pytest.mark.parametrize(("subject", "headers", "label"), STORED)
def test_labels_of_buckets(subject, headers, label):
    assert Explainer().sent(Pub(subject, b"", b"", headers)).label == label


def test_direct_get():
    explainer = Explainer()
    asked = explainer.sent(Pub(API + b"DIRECT.GET.S", b"_INBOX.1", b'{"seq":1,"batch":2}'))
    assert asked == Note(
        "call",
        "DIRECT.GET",
        "The client asks stream `S` for a stored message, by direct get. It asks for: batch 2, "
        "seq 1.",
    )
    headers = ["Nats-Stream: S", "Nats-Subject: a", "Nats-Sequence: 1"]
    note = explainer.received(Msg(b"_INBOX.1", 1, headers=block(*headers)))
    assert note == Note(
        "response", "message 1", "The stored message: sequence 1 of stream `S`, subject `a`."
    )
    more = explainer.received(Msg(b"_INBOX.1", 1, headers=block(*headers, "Nats-Num-Pending: 2")))
    assert more.text.endswith("subject `a`. After it, 2 more match.")
    last = explainer.received(Msg(b"_INBOX.1", 1, headers=status("204 EOB")))
    assert last.text == "204 EOB. That was the last message of the batch."
    assert explainer.sent(Pub(API + b"DIRECT.GET.S.a.b", b"_INBOX.2")).text == (
        "The client asks stream `S` for a stored message, by direct get."
    )


ADVISORIES = [
    (
        {
            "type": "io.nats.jetstream.advisory.v1.max_deliver",
            "stream": "S",
            "consumer": "C",
            "stream_seq": 1,
            "deliveries": 2,
        },
        "An advisory, `max deliver`, about consumer `C` of stream `S`. Message 1 was delivered 2 "
        "times.",
    ),
    ({}, "An advisory, `unknown`, about consumer `?` of stream `?`."),
]


@pytest.mark.parametrize(("body", "text"), ADVISORIES)
def test_advisories(body, text):
    subject = b"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.S.C"
    note = Explainer().received(Msg(subject, 1, b"", json.dumps(body).encode()))
    assert (note.kind, note.text) == ("advisory", text)


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_every_recorded_frame_has_a_note(path):
    explainers, parsers = {}, {}
    for entry in json.loads(path.read_text())["frames"]:
        if entry["dir"] not in "<>":
            continue
        peer = "server" if entry["dir"] == "<" else "client"
        parser = parsers.setdefault((entry["conn"], peer), Parser(peer=peer, follow_info=False))
        try:
            frames = parser.feed(base64.b64decode(entry["b64"]))
        except ProtocolError as error:
            frames = error.frames
            parsers[entry["conn"], peer] = Parser(peer=peer, follow_info=False)
        explainer = explainers.setdefault(entry["conn"], Explainer())
        for frame in frames:
            note = explainer.received(frame) if peer == "server" else explainer.sent(frame)
            assert note.text.endswith(".")
            assert "not known here" not in note.text
            for text in (note.kind, note.label, note.text, wire_text(frame)):
                text.encode()  # no lone surrogates
