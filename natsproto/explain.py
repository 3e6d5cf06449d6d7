"""Explain the frames of a connection in sentences, for people who read a trace.

An Explainer follows one connection. It is given every frame in order, those that the client sends
and those that it receives, and returns a Note for each. It remembers subscriptions and requests, so
that a message is explained by the subscription that it is for, and a response by its request.

    explainer = Explainer()
    for frame in Parser(peer="client").feed(data):
        print(explainer.sent(frame).text)

`wire_text` returns the wire form of a frame, with long values cut and secrets masked.

This module covers core NATS. jetstream/tools/explain extends it to JetStream.
"""

from __future__ import annotations

from .wire import text as _text
from .wire.frames import Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub
from .wire.record import Record

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

    from .wire.frames import Frame

# The fields of CONNECT whose values are never shown.
SECRETS = ("auth_token", "jwt", "pass", "sig")
# The fields of INFO that clients act on; the others are left out.
_INFO_SHOWN = (
    "server_name",
    "version",
    "proto",
    "headers",
    "max_payload",
    "jetstream",
    "auth_required",
    "tls_required",
    "tls_available",
    "nonce",
    "cluster",
    "domain",
    "connect_urls",
    "connect_info",
    "ldm",
)
_VALUE = 60  # characters of a value
_PAYLOAD = 200  # characters of a payload
_REMEMBERED = 1000  # requests whose response is still expected

# What the texts of -ERR mean: the start in lower case, a sentence, and whether the connection stays
# open. The first match wins.
ERRORS = [
    ("permissions violation for publish", "The user may not publish there", True),
    ("permissions violation", "The user may not subscribe there", True),
    ("invalid subject", "The subject of the SUB is malformed", True),
    ("invalid publish subject", "The subject of the PUB is malformed", True),
    ("maximum subscriptions exceeded", "The connection has too many subscriptions", True),
    ("authorization violation", "The server rejects the credentials", False),
    ("user authentication expired", "The credentials of the user have expired", False),
    ("user authentication revoked", "The credentials of the user were revoked", False),
    ("account authentication expired", "The credentials of the account have expired", False),
    ("authentication expired", "The credentials have expired", False),
    ("authentication timeout", "No valid CONNECT arrived in time", False),
    ("stale connection", "The client left too many PINGs unanswered", False),
    ("slow consumer", "The client does not read fast enough", False),
    ("unknown protocol operation", "The server does not recognize the operation", False),
    ("maximum payload violation", "The payload is larger than the server allows", False),
    ("maximum control line exceeded", "The control line is longer than the server allows", False),
    ("maximum connections exceeded", "The server has too many connections", False),
    ("maximum account active connections", "The account has too many connections", False),
    ("connection throttling is active", "The server accepts no more connections now", False),
    ("failed account registration", "The server could not register the account", False),
    ("attempted to connect to", "The client connected to a port that is not for clients", False),
    ("invalid client protocol", "The server does not know the protocol in CONNECT", False),
    ("no responders requires headers", "no_responders needs headers: a 503 is one", False),
    ("secure connection - tls required", "The server accepts only TLS", False),
    ("server shutdown", "The server is shutting down", False),
]


class Note(Record):
    """The explanation of one frame.

    kind    what the frame is: one word or two, such as "request" or "pull request"
    label   a few words, for charts and one-line traces
    text    sentences that say what the frame does
    """

    __slots__ = ("kind", "label", "text")

    def __init__(self, kind: str, label: str, text: str) -> None:
        self.kind: str = kind
        self.label: str = label
        self.text: str = text


class Request(Record):
    """A publish that expects a response: its kind, and the words to explain the response with."""

    __slots__ = ("kind", "name", "subject")

    def __init__(self, kind: str, subject: str, name: str) -> None:
        self.kind: str = kind
        self.subject: str = subject
        self.name: str = name


class Explainer:
    """Explains the frames of one connection; see the module."""

    def __init__(self) -> None:
        self._subscriptions: dict[int, Sub] = {}
        self._requests: dict[str, Request] = {}
        self._connected = False
        self._informed = False

    def sent(self, frame: Frame) -> Note:
        """Explain a frame that the client sends."""
        if isinstance(frame, Pub):
            return self.published(frame)
        if isinstance(frame, Connect):
            return self._introduced(frame)
        if isinstance(frame, Sub):
            self._subscriptions[frame.sid] = frame
            return _subscribed(frame)
        if isinstance(frame, Unsub):
            return self._unsubscribed(frame)
        if isinstance(frame, Ping):
            if self._connected:
                return Note("ping", "PING", "The client asks for a PONG.")
            text = "The client asks for a PONG: it proves that the server accepted CONNECT."
            return Note("ping", "PING", text)
        return Note("pong", "PONG", "The client answers the PING: it is alive.")

    def received(self, frame: Frame) -> Note:
        """Explain a frame that the server sends."""
        if isinstance(frame, Msg):
            return self.delivered(frame)
        if isinstance(frame, Info):
            return self._info(frame)
        if isinstance(frame, Err):
            return _error(frame)
        if isinstance(frame, Ok):
            return Note("ok", "+OK", "In verbose mode the server confirms each operation.")
        if isinstance(frame, Ping):
            return Note("ping", "PING", "The server checks that the client is alive.")
        first, self._connected = not self._connected, True
        if first:
            text = "The PONG answers the PING after CONNECT: the connection is established."
        else:
            text = "The PONG answers the oldest PING: the server has processed all before it."
        return Note("pong", "PONG", text)

    def published(self, pub: Pub) -> Note:
        """Explain a publish."""
        if not pub.raw_reply:
            text = "The client publishes %s to `%s`." % (message(pub.data), name(pub.raw_subject))
            return Note("publish", "PUB %s" % _cut(pub.subject, 30), text)
        self.remember(pub, "request", "")
        text = "The client sends %s to `%s`, with `%s` as the subject for responses."
        text = text % (message(pub.data), name(pub.raw_subject), name(pub.raw_reply))
        return Note("request", "request to %s" % _cut(pub.subject, 26), text)

    def delivered(self, msg: Msg) -> Note:
        """Explain a message from the server."""
        request = self.request_of(msg)
        if msg.status == 503 and not msg.data and (request is not None or _by_server(msg)):
            return _no_responders(request)
        if request is not None and not msg.status:
            text = "%s in response to the request to `%s`."
            text = text % (upper(message(msg.data)), request.subject)
            return Note("response", "response", text)
        subscription = self._subscriptions.get(msg.sid)
        text = "%s to `%s`" % (upper(message(msg.data)), name(msg.raw_subject))
        if subscription is None:
            text += ", for subscription %d." % msg.sid
        else:
            text += ", for subscription %d (`%s`%s)." % (
                msg.sid,
                _cut(subscription.subject, _VALUE),
                " in queue group `%s`" % subscription.queue if subscription.queue else "",
            )
        if msg.status:
            text += " Its header block starts with a status line, which its publisher wrote."
        return Note("message", "MSG %s" % _cut(msg.subject, 30), text)

    def remember(self, pub: Pub, kind: str, what: str) -> None:
        """Keep a request until its response is explained."""
        if len(self._requests) >= _REMEMBERED:
            self._requests.clear()  # the trace of a long-lived client must not grow without limit
        self._requests[pub.reply] = Request(kind, name(pub.raw_subject), what)

    def request_of(self, msg: Msg) -> Request | None:
        """Return the request that a message responds to; None if there is none."""
        return self._requests.get(msg.subject)

    def _introduced(self, frame: Connect) -> Note:
        fields = frame.fields
        parts: list[str] = []
        if fields.get("verbose") is True:
            parts.append("It asks for a +OK after each operation.")
        proofs = [each for each in ("user", "auth_token", "nkey", "jwt") if fields.get(each)]
        if proofs:
            parts.append("It presents credentials: %s." % ", ".join(proofs))
        if fields.get("sig"):
            parts.append("The signature of the nonce proves that it holds the private key.")
        if fields.get("headers") is not True:
            parts.append("It does not accept headers: messages arrive without them.")
        elif fields.get("no_responders") is True:
            parts.append("It wants headers, and a 503 for requests that no one receives.")
        text = " ".join(["The client introduces itself."] + parts)
        return Note("connect", "CONNECT", text)

    def _unsubscribed(self, frame: Unsub) -> Note:
        subscription = self._subscriptions.get(frame.sid)
        which = "subscription %d" % frame.sid
        if subscription is not None:
            which += " (`%s`)" % _cut(subscription.subject, _VALUE)
        if frame.after:
            count = "1 message" if frame.after == 1 else "%d messages" % frame.after
            text = "The client limits %s to %s in all." % (which, count)
            return Note("unsubscribe", "UNSUB %d after %d" % (frame.sid, frame.after), text)
        return Note("unsubscribe", "UNSUB %d" % frame.sid, "The client ends %s." % which)

    def _info(self, frame: Info) -> Note:
        first, self._informed = not self._informed, True
        if frame.ldm:
            text = "The server enters lame duck mode: it will close all connections. "
            return Note("info", "INFO ldm", text + "The client should move to another server.")
        if first:
            text = "The server introduces itself"
            text += ": version %s." % frame.version if frame.version else "."
            if frame.nonce:
                text += " The client has to sign the nonce."
            elif frame.auth_required:
                text += " The client has to present credentials."
            if frame.tls_required:
                text += " It requires TLS."
            return Note("info", "INFO", text + _members(frame))
        if frame.connect_info:
            text = "The server repeats INFO after CONNECT, now with the account's details."
            return Note("info", "INFO", text)
        return Note("info", "INFO", "The server updates its INFO." + _members(frame))


def wire_text(frame: Frame) -> str:
    """Return the wire form of a frame, with long values cut and secrets masked."""
    if isinstance(frame, (Msg, Pub)):
        return _message_text(frame)
    if isinstance(frame, Info):
        shown = [(key, frame.fields[key]) for key in _INFO_SHOWN if key in frame.fields]
        return "INFO %s" % _object(shown, len(shown) < len(frame.fields))
    if isinstance(frame, Connect):
        fields = [
            (key, "***" if key in SECRETS and value else value)
            for key, value in frame.fields.items()
        ]
        return "CONNECT %s" % _object(fields, False)
    if isinstance(frame, Sub):
        queue = " %s" % frame.queue if frame.queue else ""
        return "SUB %s%s %d" % (_cut(frame.subject, _VALUE), queue, frame.sid)
    if isinstance(frame, Unsub):
        return "UNSUB %d%s" % (frame.sid, " %d" % frame.after if frame.after else "")
    if isinstance(frame, Err):
        return "-ERR '%s'" % _cut(frame.text, _PAYLOAD)
    if isinstance(frame, Ping):
        return "PING"
    return "PONG" if isinstance(frame, Pong) else "+OK"


def name(raw: bytes) -> str:
    """Return a subject as printable text, cut if it is long."""
    return _cut(_text.decode(raw), _VALUE)


def printable(text: str) -> str:
    r"""Return text with control characters and non-UTF-8 bytes escaped, as in \x00."""
    return "".join([char if " " <= char <= "~" else _escape(char) for char in text])


def seconds(nanoseconds: object) -> str:
    """Return a duration of the JetStream API in seconds, as in "1.5 s"."""
    if not isinstance(nanoseconds, int):
        return "%s" % (nanoseconds,)
    text = "%.3f" % (nanoseconds / 1000000000)
    return "%s s" % text.rstrip("0").rstrip(".")


def message(data: bytes) -> str:
    """Return "a message of 5 bytes", or "an empty message"."""
    return "a message of %s" % size(data) if data else "an empty message"


def size(data: bytes) -> str:
    """Return "1 byte", "2 bytes" and so on."""
    return "1 byte" if len(data) == 1 else "%d bytes" % len(data)


def _escape(char: str) -> str:
    code = ord(char)
    if code in (9, 10, 13):
        return {9: "\\t", 10: "\\n", 13: "\\r"}[code]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, see wire/text.py
        code -= 0xDC00
    elif code > 0xA0:
        return char
    return "\\x%02x" % code


def _cut(text: str, most: int) -> str:
    text = printable(text[: most + 1])  # escapes are longer, so the rest is never shown
    return text if len(text) <= most else "%s..." % text[: most - 3]


def upper(text: str) -> str:
    """Return text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def _by_server(msg: Msg) -> bool:
    # Anyone can publish a status line; the server's 503 has the subject of the request as well.
    return b"\r\nNats-Subject: " in (msg.raw_headers or b"")


def _message_text(frame: Msg | Pub) -> str:
    fields = [name(frame.raw_subject)]
    operation = "PUB"
    if isinstance(frame, Msg):
        operation = "MSG"
        fields.append("%d" % frame.sid)
    if frame.raw_reply:
        fields.append(name(frame.raw_reply))
    block = frame.raw_headers
    if block is not None:
        operation = "H" + operation
        fields.append("%d" % len(block))
    fields.append("%d" % (len(frame.data) + len(block or b"")))
    lines = [" ".join([operation] + fields)]
    if block is not None:
        text = _text.decode(block)
        lines += [_cut(line, _PAYLOAD) for line in text.rstrip("\r\n").split("\r\n")]
        if frame.data:
            lines.append("")
    if frame.data:
        lines.append(_payload(frame.data))
    return "\n".join(lines)


def _payload(data: bytes) -> str:
    text = _cut(_text.decode(data), _PAYLOAD)
    first = data[:1]
    if len(data) > 16 and data == first * len(data):
        return "%s... (%d times)" % (_cut(_text.decode(first) * 3, _PAYLOAD), len(data))
    return text


def _object(fields: list[tuple[str, Any]], more: bool) -> str:
    import json

    parts = ["%s:%s" % (json.dumps(key), _cut(json.dumps(value), _VALUE)) for key, value in fields]
    return "{%s}" % ",".join(parts + ["..."] * more)


def _subscribed(frame: Sub) -> Note:
    text = "The client subscribes to `%s` under id %d" % (_cut(frame.subject, _VALUE), frame.sid)
    if frame.queue:
        text += " as a member of queue group `%s`" % frame.queue
    return Note("subscribe", "SUB %s" % _cut(frame.subject, 30), text + ".")


def _no_responders(request: Request | None) -> Note:
    where = " to `%s`" % request.subject if request is not None else ""
    text = "503 No Responders. No one is subscribed to receive the request%s." % where
    return Note("status", "503 No Responders", text)


def _error(frame: Err) -> Note:
    lower = frame.text.lower()
    text = "The server reports an error that is not known here."
    for start, meaning, stays_open in ERRORS:
        if lower.startswith(start):
            what = "the connection stays open" if stays_open else "the server closes the connection"
            text = "%s; %s." % (meaning, what)
            break
    return Note("error", "-ERR %s" % _cut(frame.text, 34), text)


def _members(frame: Info) -> str:
    count = len(frame.connect_urls)
    if not count:
        return ""
    return " The cluster lists %d address%s to connect to." % (count, "" if count == 1 else "es")
