"""Explain the frames of a JetStream client in sentences; natsproto/explain.py has the rest.

    subject or reply        frame
    $JS.API.<endpoint>      a call of the API, among them CONSUMER.MSG.NEXT, the pull request
    $JS.ACK.<...>           client: an acknowledgment; in a reply: a message of a consumer
    $JS.FC.<...>            flow control: the server's request, and the client's response
    $KV.<bucket>.<key>      a key of the key-value store
    $O.<bucket>.C, .M       chunks and descriptions of the object store
    $JS.EVENT.ADVISORY.>    an advisory

A status arrives on the reply subject of its pull, and is explained by what the pull asked for.
"""

from __future__ import annotations

from jetstream.api.metadata import read_metadata
from jetstream.errors import NotJetStreamMessage
from natsproto import explain as core
from natsproto.errors import HeaderError
from natsproto.explain import Note, name, printable, seconds, size, upper
from natsproto.wire import text as _text

from .tables import CALLS, HEADERS, PULL_FIELDS, STATUSES

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from natsproto.explain import Request
    from natsproto.wire.frames import Msg, Pub

_ACK = b"$JS.ACK."
_FLOW_CONTROL = b"$JS.FC."


class Explainer(core.Explainer):
    """Explains the frames of one connection, JetStream included."""

    def published(self, pub: Pub) -> Note:
        """Explain a publish: a call, an acknowledgment, a response, or a message."""
        subject = pub.raw_subject
        if subject.startswith(_ACK):
            return self._acknowledged(pub)
        if subject.startswith(_FLOW_CONTROL):
            text = "The client answers the flow control request: it has read all earlier messages."
            return Note("flow control", "flow control response", text)
        endpoint = _endpoint(subject)
        if endpoint is not None:
            return self._called(pub, endpoint)
        note = super().published(pub)
        facts = _header_facts(pub)
        label, place = _store_place(subject, _pairs(pub).get("KV-Operation", "PUT"))
        if place:
            facts = [place] + facts
        return Note(note.kind, label or note.label, " ".join([note.text] + facts))

    def delivered(self, msg: Msg) -> Note:
        """Explain a message: a delivery, a status, a response, an advisory, or a plain message."""
        if msg.raw_reply.startswith(_ACK):
            try:
                return _delivery(msg)
            except NotJetStreamMessage:
                return super().delivered(msg)
        if msg.status and not msg.data and self._is_status(msg):
            return self._status(msg)
        if msg.raw_subject.startswith(b"$JS.EVENT."):
            return _advisory(msg)
        request = self.request_of(msg)
        if request is not None:
            response = _response(msg, request)
            if response is not None:
                return response
        return super().delivered(msg)

    def _acknowledged(self, pub: Pub) -> Note:
        try:
            data = read_metadata(pub.raw_subject)
            what = "message %d of stream `%s`" % (data.stream_seq, printable(data.stream))
        except NotJetStreamMessage:
            what = "a message"
        kind, label, text = _acknowledgment(pub.data)
        text = text % what
        if pub.raw_reply:
            self.remember(pub, "ack", what)
            text += " It asks the server to confirm that."
        return Note(kind, label, text)

    def _called(self, pub: Pub, endpoint: str) -> Note:
        words, done = _call(endpoint)
        if endpoint.startswith("CONSUMER.MSG.NEXT."):
            self.remember(pub, "pull", "")
            return _pull(pub, words)
        direct = endpoint.startswith("DIRECT.GET.")
        self.remember(pub, "direct" if direct else "call", done)
        facts = [_direct_facts(pub)] if direct else []
        facts += _header_facts(pub)
        text = " ".join(["The client %s." % words] + [each for each in facts if each])
        return Note("call", _short(endpoint), text)

    def _is_status(self, msg: Msg) -> bool:
        # Only the server writes statuses, and only to the reply subject of a request or to the
        # subject of a push consumer, as heartbeats. A publisher can write anything anywhere.
        if self.request_of(msg) is not None:
            return True
        if msg.status != 100:
            return False
        block = msg.raw_headers or b""
        return msg.raw_reply.startswith(_FLOW_CONTROL) or b"\r\nNats-Last-Consumer:" in block

    def _status(self, msg: Msg) -> Note:
        request = self.request_of(msg)
        if msg.status == 503 and request is not None and request.kind != "pull":
            return super().delivered(msg)
        description = msg.description or ("No Responders" if msg.status == 503 else "")
        label = ("%d %s" % (msg.status, printable(description))).strip()
        lower = msg.description.lower()
        meaning = "This status is not known here."
        for code, start, sentence in STATUSES:
            if code == msg.status and lower.startswith(start):
                meaning = sentence
                break
        kind = "heartbeat" if msg.status == 100 else "status"
        if msg.raw_reply.startswith(_FLOW_CONTROL):
            kind = "flow control"
        text = "%s. %s" % (label, meaning)
        return Note(kind, label, " ".join([text] + _status_facts(msg)))


def _endpoint(subject: bytes) -> str | None:
    """Return the endpoint after `$JS.API.` or `$JS.<domain>.API.`; None if it is not a call."""
    tokens = name(subject).split(".")
    if tokens[:2] == ["$JS", "API"] and len(tokens) > 2:
        return ".".join(tokens[2:])
    if tokens[0] == "$JS" and tokens[2:3] == ["API"] and len(tokens) > 3:
        return ".".join(tokens[3:])
    return None


def _call(endpoint: str) -> tuple[str, str]:
    """Return the words for a call, and for its response."""
    for start, count, words, done in CALLS:
        if endpoint != start and not endpoint.startswith(start + "."):
            continue
        names = endpoint[len(start) + 1 :].split(".") if len(endpoint) > len(start) else []
        if len(names) < count:
            continue
        if count == 0:
            return words, done
        whose = "stream `%s`" % names[0] if count == 1 else "consumer `%s`" % names[1]
        request = words % names[0] if count == 1 else words % (names[1], names[0])
        return request, done % whose if "%s" in done else done
    return "calls `%s`" % endpoint, "the call succeeded"


def _short(endpoint: str) -> str:
    for start, _, _, _ in CALLS:
        if endpoint == start or endpoint.startswith(start + "."):
            return start
    return endpoint


def _pull(pub: Pub, words: str) -> Note:
    body = _read_object(pub.data)
    if body is None:
        if not pub.data:
            what = "with an empty body, which stands for one message"
        elif pub.data.startswith(b"{"):
            what = "with a body that is not valid JSON"
        else:
            what = "in the old form, with the body `%s`" % name(pub.data)
        return Note("pull request", "pull", "The client %s, %s." % (words, what))
    batch = body.get("batch", 1)
    if isinstance(batch, int) and batch > 0:
        parts = ["at most %d message%s" % (batch, "" if batch == 1 else "s")]
    else:
        parts = ["a batch of `%s`" % (batch,)]
    label = ["batch %s" % batch]
    for key, form in PULL_FIELDS:
        if key in body:
            parts.append(form % (body[key],))
            label.append("%s %s" % (key, body[key]))
    expires = "expires" in body and seconds(body["expires"])
    if body.get("no_wait") is True:
        label.append("no_wait")
        waits = "It waits up to %s, but only for the first message." % expires
        wait = waits if expires else "It takes only messages that are available now."
    elif expires:
        wait = "It waits up to %s." % expires
    else:
        wait = "It waits without a limit."
    if expires:
        label.append("expires %s" % expires)
    if "idle_heartbeat" in body:
        every = seconds(body["idle_heartbeat"])
        wait += " While it waits, the server sends a heartbeat every %s." % every
        label.append("heartbeat %s" % every)
    text = "The client %s: %s. %s" % (words, ", ".join(parts), wait)
    return Note(
        "pull request", "pull: %s" % ", ".join(label), " ".join([text] + _header_facts(pub))
    )


def _acknowledgment(data: bytes) -> tuple[str, str, str]:
    kind, _, rest = data.partition(b" ")
    text = printable(_text.decode(rest))
    if kind in (b"", b"+ACK"):
        return "ack", "+ACK", "The client acknowledges %s: it is done."
    if kind == b"-NAK":
        delay = (_read_object(rest) or {}).get("delay")
        when = "in %s" % seconds(delay) if delay is not None else "now"
        return "ack", "-NAK", "The client rejects %s; the server redelivers it " + when + "."
    if kind == b"+WPI":
        return "ack", "+WPI", "The client is still working on %s: its ack wait starts again."
    if kind == b"+TERM":
        why = ", for the reason `%s`" % text.replace("%", "%%") if text else ""
        return "ack", "+TERM", "The client terminates %s" + why + ": it is not redelivered."
    if kind == b"+NXT":
        return "ack", "+NXT", "The client acknowledges %s and pulls the next one."
    return "ack", "ack", "The client sends an acknowledgment of unknown kind for %s."


def _delivery(msg: Msg) -> Note:
    data = read_metadata(msg.raw_reply)
    stream, consumer = printable(data.stream), printable(data.consumer)
    text = "Message %d of stream `%s` (`%s`, %s), delivery %d of consumer `%s`" % (
        data.stream_seq,
        stream,
        name(msg.raw_subject),
        size(msg.data),
        data.consumer_seq,
        consumer,
    )
    if data.domain:
        text += " in domain `%s`" % printable(data.domain)
    if data.delivered > 1:
        text += ". It is the %s time that it is delivered" % _ordinal(data.delivered)
    text += "; %s pending." % (data.pending or "none",)
    label = "message %d" % data.stream_seq
    if data.delivered > 1:
        label += " (%s delivery)" % _ordinal(data.delivered)
    pins = [each for each in _header_facts(msg) if each.startswith("The pin")]
    return Note("delivery", label, " ".join([text] + pins))


def _status_facts(msg: Msg) -> list[str]:
    headers = _pairs(msg)
    facts: list[str] = []
    messages = headers.get("Nats-Pending-Messages")
    left = headers.get("Nats-Pending-Bytes")
    if messages not in (None, "0"):
        rest = ", and %s of its bytes" % left if left not in (None, "0") else ""
        facts.append("It still lacked %s of its messages%s." % (messages, rest))
    last = headers.get("Nats-Last-Consumer")
    if last == "0":
        facts.append("Nothing has been delivered yet.")
    elif last is not None:
        facts.append(
            "The last delivery was number %s, of message %s."
            % (last, headers.get("Nats-Last-Stream"))
        )
    stalled = headers.get("Nats-Consumer-Stalled")
    if stalled is not None:
        facts.append("The flow control request `%s` is still unanswered." % stalled)
    return facts


def _response(msg: Msg, request: Request) -> Note | None:
    """Return the explanation of a response; None if it has no particular one."""
    if request.kind == "ack":
        return Note("confirmation", "ack confirmed", "The server confirms the ack.")
    headers = _pairs(msg)
    if request.kind == "direct" and "Nats-Sequence" in headers:
        text = "The stored message: sequence %s of stream `%s`, subject `%s`."
        fields = (headers["Nats-Sequence"], headers.get("Nats-Stream"), headers.get("Nats-Subject"))
        text = text % fields
        if headers.get("Nats-Num-Pending", "0") != "0":
            text += " After it, %s more match." % headers["Nats-Num-Pending"]
        return Note("response", "message %s" % headers["Nats-Sequence"], text)
    body = _read_object(msg.data)
    if body is None:
        return None
    if isinstance(body.get("error"), dict):
        return _api_error(body["error"])
    if "stream" in body and "seq" in body:
        return _pub_ack(body)
    if request.kind != "call":
        return None
    done = "%s." % upper(request.name)
    if "purged" in body:
        done += " It removed %s messages." % body["purged"]
    return Note("response", "response", done)


def _api_error(error: dict[str, Any]) -> Note:
    code, number = error.get("code"), error.get("err_code")
    what = "error %s (code %s)" % (number, code) if number else "error %s" % (code,)
    text = "The server refuses: %s, %s." % (what, error.get("description"))
    return Note("error", "error %s" % (number or code,), text)


def _pub_ack(body: dict[str, Any]) -> Note:
    where = "sequence %s of stream `%s`" % (body["seq"], body["stream"])
    if body.get("duplicate") is True:
        text = "The stream knows this id already, from %s: it stores nothing." % where
        return Note("publish ack", "ack: duplicate of %s" % body["seq"], text)
    text = "The stream has stored the message: %s." % where
    return Note("publish ack", "ack: sequence %s" % body["seq"], text)


def _advisory(msg: Msg) -> Note:
    body = _read_object(msg.data) or {}
    kind = ("%s" % (body.get("type", ""),)).split(".")[-1].replace("_", " ")
    text = "An advisory, `%s`, about consumer `%s` of stream `%s`."
    text = text % (kind or "unknown", body.get("consumer", "?"), body.get("stream", "?"))
    if "deliveries" in body:
        text += " Message %s was delivered %s times." % (body.get("stream_seq"), body["deliveries"])
    return Note("advisory", "advisory: %s" % (kind or "unknown"), text)


def _direct_facts(pub: Pub) -> str:
    import json

    body = _read_object(pub.data)
    if not body:
        return ""
    fields = ["%s %s" % (key, printable(json.dumps(body[key]))) for key in sorted(body)]
    return "It asks for: %s." % ", ".join(fields)


def _header_facts(frame: Msg | Pub) -> list[str]:
    headers = _pairs(frame)
    facts: list[str] = []
    for key, form in HEADERS:
        if key in headers:
            facts.append(form % printable(headers[key]) if "%s" in form else form)
    return facts


def _pairs(frame: Msg | Pub) -> dict[str, str]:
    try:
        return dict(frame.headers.items()) if frame.headers is not None else {}
    except HeaderError:
        return {}


def _store_place(subject: bytes, operation: str) -> tuple[str, str]:
    """Return a label and a sentence for a subject of a bucket; both are empty for any other."""
    tokens = name(subject).split(".")
    if tokens[0] == "$KV" and len(tokens) > 2:
        key = ".".join(tokens[2:])
        label = "%s key %s" % (printable(operation).lower(), key)
        return label, "That is key `%s` of bucket `%s`." % (key, tokens[1])
    if tokens[0] == "$O" and len(tokens) > 3:
        what = "chunk" if tokens[2] == "C" else "description"
        return "%s of an object" % what, "That is a %s of an object in bucket `%s`." % (
            what,
            tokens[1],
        )
    return "", ""


def _read_object(data: bytes) -> dict[str, Any] | None:
    import json

    try:
        value: Any = json.loads(data.decode())
    except (ValueError, UnicodeError):
        return None
    if not isinstance(value, dict):
        return None
    return value  # pyright: ignore[reportUnknownVariableType] - JSON keys are str


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "%dth" % number
    return "%d%s" % (number, {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th"))
