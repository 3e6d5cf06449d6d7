"""What holds for any data that a server or another client may send above the wire protocol.

Each check takes the bytes of one input. Only documented errors may be raised, the values that are
returned have the types that are promised, and functions that read the same thing agree.

    api       a response of the JetStream API: errors, information, stored messages, listings
    ack       a reply subject `$JS.ACK...` in both formats, as metadata, and in an ordered consumer
    advisory  an advisory or a metric
    stored    a message of a bucket or an object store: entries, object infos, direct get
    service   a request to a service and its monitoring, and what its clients read
    info      INFO, when a connection begins and later
"""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jetstream.advisories.event import Advisory
from jetstream.advisories.kinds import decode_advisory, read_advisory
from jetstream.api.client import read_reply
from jetstream.api.counters import read_counter
from jetstream.api.listing import read_missing, read_offline
from jetstream.api.metadata import read_consumer_seq, read_place
from jetstream.api.republished import republished, scheduled
from jetstream.api.stored import StoredMsg, page_end, read_direct, read_stored
from jetstream.errors import InvalidResponse, JetStreamError, NotJetStreamMessage
from jetstream.kv.entry import delivered_entry, stored_entry
from jetstream.machine.policy import KEEP
from jetstream.message import JsMsg
from jetstream.objects.info import read_info
from jetstream.ordered.cursor import Cursor
from jetstream.schema.account_info import AccountInfo
from jetstream.schema.consumer_info import ConsumerInfo
from jetstream.schema.pub_ack import PubAck
from jetstream.schema.stream_info import StreamInfo
from jetstream.schema.timestamp import Timestamp
from jetstream.services.errors import service_error
from jetstream.services.responses import ServiceInfo, ServicePing, ServiceStats, read_response
from natsproto.connection import Connection
from natsproto.connection.tokens import Numbers
from natsproto.errors import HeaderError, InvalidSubject, InvalidValue, NatsError
from natsproto.options import Options
from natsproto.wire.frames import Info, Msg
from natsproto.wire.parser import Parser
from natsproto.wire.subjects import check_publish
from tests.connection.support import PONG, Script, info
from tests.jetstream.service_stage import ServiceStage

if TYPE_CHECKING:
    from collections.abc import Callable

    from jetstream.schema.fields import Fields

#: Errors that readers of responses may raise; JetStreamError includes those of the API.
EXPECTED = (JetStreamError, InvalidResponse, HeaderError)
CLASSES = (StreamInfo, ConsumerInfo, AccountInfo, PubAck)
RESPONSES = (
    ("PING", ServicePing, b"ping_response"),
    ("INFO", ServiceInfo, b"info_response"),
    ("STATS", ServiceStats, b"stats_response"),
)
MOST_REPLY = 4000
_OPTIONS = Options(servers="nats://a:4222", shuffle=False)
_INFO = info()


def check_api(data: bytes) -> None:
    """Check a response of the API."""
    try:
        answer = read_reply(data)
    except EXPECTED:
        return
    for cls in CLASSES:
        try:
            found = cls.from_json(answer)
        except EXPECTED:
            continue
        if cls is PubAck or _has_fields(found):
            repr(found)
            _check_json(found)
    for read in (read_missing, read_offline):
        with suppress(*EXPECTED):
            repr(read(answer))
    try:
        msg = read_stored("S", answer)
    except EXPECTED:
        return
    assert isinstance(msg.seq, int), "a sequence is a number"
    assert isinstance(msg.subject, str), "a subject is text"
    _check_stored(msg)


def _has_fields(found: Fields) -> bool:
    """Return whether anything but unknown fields was read.

    Otherwise showing and writing it, which takes most of the time, is the same as for a PubAck.
    """
    return bool(found.given_fields())


def _check_json(found: Fields) -> None:
    """Check that what was read can be written, unless a number is out of its range."""
    try:
        assert isinstance(found.to_json(), dict)
    except InvalidValue:
        pass


def _check_stored(msg: StoredMsg) -> None:
    entry = stored_entry(msg, "b", "key")
    assert entry.deleted == (entry.operation != "PUT")
    for read in (republished, scheduled, read_counter):
        with suppress(*EXPECTED):
            read(msg)


def check_ack(data: bytes) -> None:
    """Check a reply subject, or several, one on each line."""
    replies = data[:MOST_REPLY].split(b"\n")
    for reply in replies:
        _check_reply(reply)
    _check_order(replies)


@functools.lru_cache(maxsize=10_000)  # most lines of an input are those of the one before
def _check_reply(reply: bytes) -> None:
    msg = JsMsg(Msg(b"s", 1, reply), None)  # type: ignore[arg-type]
    try:
        metadata = msg.metadata  # it calls read_metadata
    except NotJetStreamMessage:
        metadata = None
    place = read_place(reply)
    number = read_consumer_seq(reply)
    if metadata is not None:
        assert place is not None
        assert place[1:] == (metadata.stream_seq, metadata.consumer_seq)
        assert number == metadata.consumer_seq
        assert min(metadata.delivered, metadata.timestamp_ns, metadata.pending) >= 0
    elif place is not None:
        assert place[2] == number


def _check_order(replies: list[bytes]) -> None:
    """Check that messages that an ordered consumer takes at once are those that it would take."""
    one_by_one, at_once = _cursor(), _cursor()
    verdicts = [one_by_one.admit(reply) for reply in replies]
    if at_once.admit_all(replies):
        assert set(verdicts) == {KEEP}
        assert (at_once.start, at_once.consumer_seq) == (one_by_one.start, one_by_one.consumer_seq)


def _cursor() -> Cursor:
    """Return the cursor of an ordered consumer that has just begun."""
    # A copy of one that was made once: that takes half of the time of an execution.
    cursor = Cursor.__new__(Cursor)
    for name, value in _begun():
        setattr(cursor, name, value)
    return cursor


@functools.cache
def _begun() -> list[tuple[str, Any]]:
    """Return the attributes of such a cursor, none of which `admit` changes in place."""
    cursor = Cursor("S", "o", {"deliver_policy": "all"})
    cursor.next_consumer()
    cursor.installed({"name": "o_1", "delivered": {"consumer_seq": 0, "stream_seq": 0}})
    return [(name, getattr(cursor, name)) for name in Cursor.__slots__]


def check_advisory(data: bytes) -> None:
    """Check an advisory: whatever it is, the reader gets an event."""
    found = decode_advisory(data)
    again = read_advisory(Msg(b"$JS.EVENT.ADVISORY.X", 1, b"", data))
    if type(found) is Advisory and not found.extra and not found.given_fields():
        # Nothing was read, as in most executions: showing and writing it is always the same.
        assert type(again) is Advisory
        assert not again.extra
        assert not again.given_fields()
        return
    repr(found)
    _check_json(found)
    assert again == found


def check_stored(data: bytes) -> None:
    """Check a message of a bucket: the reply subject, the headers and the payload, by lines."""
    reply, _, rest = data.partition(b"\n")
    block, _, payload = rest.partition(b"\0")
    msg = Msg(b"$KV.b.key", 1, reply, payload, block or None)
    if read_place(reply) is not None:  # the machine lets no other pass
        try:
            entry = delivered_entry(msg, "b", "$KV.b.")
        except InvalidResponse:
            pass
        else:
            assert entry.revision >= 0
            assert entry.key == "key"
    for read in (read_direct, page_end):
        with suppress(*EXPECTED):
            found = read(msg)
            if isinstance(found, StoredMsg):
                _check_stored(found)
    try:
        info = read_info(payload, Timestamp(0))
    except InvalidResponse:
        return
    assert info.name
    _check_json(info)


class _Service:
    """A service that answers what it gets; made once."""

    def __init__(self) -> None:
        self.stage = ServiceStage()
        service = self.stage.service()
        service.add_endpoint("echo", self._handle)
        self.stage.run(service.start())
        self.running = self.stage.start(service.run())
        self.stage.settle()
        self.sids = sorted(self.stage.subs)

    def _handle(self, request: Any) -> bytes:
        repr(request)
        try:
            request.json()
        except (ValueError, RecursionError):
            pass
        try:
            headers = request.headers
        except HeaderError:
            headers = None
        if headers is not None and "fail" in headers:
            raise KeyError(headers["fail"])
        return bytes(request.data)


_service: list[_Service] = []


def check_service(data: bytes) -> None:
    """Check a request to each subject of a service, and the same data as a response of one."""
    check_services([data])


def check_services(inputs: list[bytes]) -> None:
    """Check several requests that arrive at once, which costs less than one after the other."""
    if not _service:
        _service.append(_Service())
    served = _service[0]
    requests = []
    replies = []
    for data in inputs:
        head, _, rest = data.partition(b"\n")
        block, _, payload = rest.partition(b"\0")
        # What the server forwards: no whitespace in subjects; the sizes are always right.
        reply = head.translate(None, b" \t\r\n\0\f\v")[:200] or b"_INBOX.x"
        replies.append(reply)
        sid = served.sids[len(data) % len(served.sids)]
        sizes = (sid, reply, len(block), len(block) + len(payload))
        requests.append(b"HMSG echo %d %s %d %d\r\n" % sizes + block + payload + b"\r\n")
        _check_client(Msg(b"_INBOX.x", 1, b"", payload, block or None))
    served.stage.wire.data(b"".join(requests))
    served.stage.settle()
    pubs, served.stage.pubs = served.stage.pubs, []
    for pub in pubs:
        assert pub.raw_subject in replies, "there is one answer at most"
        replies.remove(pub.raw_subject)
    # An error cannot be sent to a subject that is not valid.
    assert not any(map(_is_publishable, replies)), "each request is answered"
    served.stage.tasks = [task for task in served.stage.tasks if not task.done]
    assert served.stage.connection.state == "CONNECTED", served.stage.connection.state
    assert not served.running.done, f"the service ended: {served.running.error!r}"


def _is_publishable(reply: bytes) -> bool:
    try:
        check_publish(reply.decode())
    except (InvalidSubject, UnicodeError):
        return False
    return True


def _check_client(msg: Msg) -> None:
    error = service_error(msg)
    if error is not None:
        assert isinstance(error.code, int)
    for i, (verb, cls, kind) in enumerate(RESPONSES):
        # All verbs reject invalid JSON and other types in the same way: one of them is enough.
        if i == len(msg.data) % 3 or kind in msg.data:
            with suppress(InvalidResponse):
                repr(read_response(cls, verb, msg.data))


def check_info(data: bytes) -> None:
    """Check INFO: a connection takes it or ends, at the beginning or later, and never raises.

    Making a connection takes most of the time. So the length decides when it receives INFO, and
    lines that the parser rejects are not sent to one: it would see the same error.
    """
    line = b"INFO " + data.translate(None, b"\r\n") + b"\r\n"
    try:
        [frame] = Parser().feed(line)
    except NatsError:
        return
    assert isinstance(frame, Info)
    assert isinstance(frame.max_payload, int)
    assert isinstance(frame.headers, bool)
    assert isinstance(frame.version, str)
    assert all(isinstance(url, str) for url in frame.connect_urls)
    connection = Connection(_OPTIONS, rng=Script(), tokens=Numbers())
    connection.connect(0.0)
    connection.transport_opened(0.0)
    if len(data) % 2:
        connection.receive_data(_INFO, 0.0)
        connection.receive_data(PONG, 0.0)
        assert connection.state == "CONNECTED"
    connection.receive_data(line, 0.0)
    if connection.state == "CONNECTED":
        connection.receive_data(PONG, 0.0)
    connection.take_effects()
    connection.data_to_send()
    connection.take_ready()
    connection.next_deadline()


CHECKS: dict[str, Callable[[bytes], None]] = {
    "api": check_api,
    "ack": check_ack,
    "advisory": check_advisory,
    "stored": check_stored,
    "service": check_service,
    "info": check_info,
}
