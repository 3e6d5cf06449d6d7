"""Parse bytes into frames: incrementally, in linear time for any split, in bounded memory.

Between two calls of `feed` the parser is in one of three states:

    between frames   `_kept` is empty
    in a line        `_kept` holds the start of a control line whose LF has not arrived
    in a payload     `_head` holds the fields of the control line, `_kept` the received part of the
                     payload, `_need` the length of the payload and its CRLF

Messages that are complete in one read, which are nearly all, are cut out by `_scan`, the hot loop:
one `find` for the end of the line, one `split`, and slices. Every other line (tabs, runs of spaces,
lower case, other operations, an incomplete payload) goes to `_read_line` and the readers below it.
They are the grammar in plain form, and they decide which input is invalid.

Limits: a control line 64 KiB, INFO and CONNECT 1 MiB, a payload max_payload, and with its header
block 64 KiB more. INFO can lower max_payload but never raise it. A client does not let INFO lower
it, because the server's own responses may be larger (spec_notes/questions.md 1).
"""

from __future__ import annotations

from natsproto.errors import InvalidValue, ProtocolError

from . import text as _text
from .frames import Connect, Err, Info, Msg, Ok, Ping, Pong, Pub, Sub, Unsub

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeAlias

    from .frames import Frame

    # subject, sid (None in a PUB), reply, header size (0: no headers), total size
    Head: TypeAlias = tuple[bytes, int | None, bytes, int, int]
    Reader: TypeAlias = Callable[["Parser", bytes], Frame | None]

MAX_LINE = 64 * 1024  # WIRE-14
MAX_JSON_LINE = 1024 * 1024
MAX_HEADERS = 64 * 1024
MAX_PAYLOAD = 64 * 1024 * 1024
_MAX_DIGITS = 18
# As many subscriptions can take turns without a miss, which costs 2 us a message.
_MAX_NUMBERS = 32768
_MAX_SIZES = 4096
_SMALL = 4096
_TAB, _LF, _CR = b"\t\n\r"
_NO_LINE = b"\n"


class Parser:
    """An incremental parser: feed it the bytes of a socket, and get frames.

    `peer` is the sender of the bytes, "server" or "client". `max_payload` is the largest payload
    that is accepted; INFO can lower it, unless `follow_info` is False.
    """

    def __init__(
        self, *, peer: str = "server", max_payload: int = MAX_PAYLOAD, follow_info: bool = True
    ) -> None:
        if peer not in ("server", "client"):
            raise InvalidValue("peer %s is neither 'server' nor 'client'" % _text.shorten(peer))
        self._readers = self._FROM_SERVER if peer == "server" else self._FROM_CLIENT
        self._own_max_payload = max_payload
        self._max_payload = max_payload
        self._follow_info = follow_info
        # Digits that `_scan` has seen before: ids and sizes repeat, and a lookup costs a third of
        # isdigit() and int(). Valid sizes, which end their lines, are stored with the CR.
        self._numbers: dict[bytes, int] = {}
        self._sizes: dict[bytes, int] = {}
        self._kept = _Pieces()
        self._line_limit = 0  # of the line in `_kept`
        self._head: Head | None = None  # WIRE-1
        self._line_size = 0  # of the line that `_head` came from
        self._need = 0
        self._offset = 0  # position in the stream of the read that is being parsed
        self._error: tuple[str, int, bytes] | None = None

    @property
    def inside(self) -> str:
        """Where the next bytes belong: "" between two frames, or in a "line" or a "payload"."""
        if self._head is not None:
            return "payload"
        return "line" if self._kept.size else ""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that this read completes, in order.

        Raises ProtocolError if the input is invalid, and again for every later call.
        """
        if self._error is not None:
            # A new object: the frames of the first were returned, and its traceback would grow.
            raise ProtocolError(*self._error)  # D-WIRE-17
        frames: list[Frame] = []
        try:
            self._feed(bytes(data), frames)
        except ProtocolError as error:
            error.frames = frames  # D-WIRE-17
            self._error = (error.reason, error.offset, error.excerpt)
            raise
        self._offset += len(data)
        return frames

    def _feed(self, data: bytes, frames: list[Frame]) -> None:
        pos = 0
        if self._kept.size and self._head is None:
            pos = data.find(b"\n") + 1
            if pos == 0:
                self._keep_line(data, 0)
                return
            # Only the line is joined, not the whole read that completes it.
            line = self._kept.join(data[: pos - 1])
            self._read_line(line, pos - 1 - len(line), frames)
        if self._head is not None:
            pos = self._read_payload(self._head, data, pos, frames)
        self._scan(data, pos, frames)

    def _scan(self, data: bytes, pos: int, frames: list[Frame]) -> None:
        """Cut every whole frame out of data[pos:] and keep the rest."""
        numbers = self._numbers
        sizes = self._sizes
        new = object.__new__
        last = len(data) - 2
        # In nearly every read no line can be too long or have a tab: check once, not per line.
        careful = len(data) > MAX_LINE or _TAB in data
        subject_before = size_before = _NO_LINE  # of the last message; at first, of none
        while True:
            eol = data.find(b"\n", pos)  # WIRE-4
            if eol < 0:
                break
            line = data[pos:eol]
            body = eol + 1
            # Unpack and look up without checking first: only rare lines raise. 1.04 us a message,
            # against 1.12 with len() and get(); with `_CR` and `_LF` 0.02 less than with a slice.
            try:
                if careful and (len(line) > MAX_LINE or _TAB in line):
                    raise ValueError("for the grammar")
                fields = line.split(b" ")
                middle = body
                headers = None
                if fields[0] == b"MSG":
                    if len(fields) == 4:
                        _, subject, sid, size = fields
                        reply = b""
                    else:
                        _, subject, sid, reply, size = fields
                elif fields[0] == b"HMSG":
                    if len(fields) == 5:
                        _, subject, sid, split, size = fields
                        reply = b""
                    else:
                        _, subject, sid, reply, split, size = fields
                    middle += numbers[split]
                    headers = data[body:middle] or None
                else:
                    raise ValueError("not a message")
                end = body + sizes[size]
                number = numbers[sid]
                if not subject or middle > end:
                    raise ValueError("not a message")
                if end > last:  # as in _read_line, but large messages often end here
                    self._line_size = body - pos
                    self._expect(subject, number, reply, middle - body, end - body)
                elif data[end] == _CR and data[end + 1] == _LF:
                    # Msg(...) without the call, which takes 10 % of the whole loop.
                    msg = new(Msg)
                    msg.raw_subject = subject
                    msg.sid = number
                    msg.raw_reply = reply
                    msg.data = data[middle:end]
                    msg.raw_headers = headers
                    msg._headers = None  # pyright: ignore[reportPrivateUsage]
                    end += 2
                    msg.size = end - pos
                    frames.append(msg)
                    pos = end
                    if subject == subject_before and size == size_before:
                        pos = _cut_alike(data, pos, fields, msg, careful, frames)
                    subject_before = subject
                    size_before = size
                    continue
            except KeyError as unknown:
                if self._learn(unknown.args[0]):
                    continue  # with the same line
            except ValueError:
                pass
            if self._head is None:
                self._read_line(line, pos, frames)
            pos = body
            if self._head is not None:
                pos = self._read_payload(self._head, data, pos, frames)
        if pos < len(data):
            self._keep_line(data, pos)

    def _learn(self, field: bytes) -> bool:
        """Store digits that are new to `_scan`; return False to leave the line to the grammar."""
        is_size = field[-1:] == b"\r"
        digits = field[:-1] if is_size else field
        # A client sends no MSG: `_scan` finds none in its bytes, because nothing is stored.
        if self._readers is not self._FROM_SERVER or not _is_number(digits):
            return False
        number = int(digits)
        if is_size and number > self._max_payload:
            return False
        known, most = (self._sizes, _MAX_SIZES) if is_size else (self._numbers, _MAX_NUMBERS)
        # Stored, and still missed: a number is in the place of a size (LF alone), or a size in the
        # place of a number (a CR inside the line).
        if field in known:
            return False
        if len(known) >= most:
            known.clear()
        known[field] = number
        return True

    def _keep_line(self, data: bytes, pos: int) -> None:
        """Keep data[pos:], which has no LF."""
        piece = data[pos:]
        if not self._kept.size:
            self._line_limit = _line_limit(piece)
        self._kept.add(piece)
        if self._kept.size > self._line_limit:
            start = len(data) - self._kept.size
            self._fail("control line is too long", start, self._kept.join(b""))

    def _read_payload(self, head: Head, data: bytes, pos: int, frames: list[Frame]) -> int:
        """Append the message if data[pos:] completes it; return the position after it."""
        end = pos + self._need - self._kept.size
        if end > len(data):
            self._kept.add(data[pos:])
            return len(data)
        subject, sid, reply, header_size, size = head
        if end - pos >= 2:  # the CRLF is whole in this read: leave it out and save a copy
            crlf = data[end - 2 : end]
            block = self._kept.join(data[pos : end - 2])
        else:
            block = self._kept.join(data[pos:end])
            crlf = block[size:]
            block = block[:size]
        if crlf != b"\r\n":  # WIRE-6
            self._fail("no CRLF after a payload of %d bytes" % size, end - 2, crlf)
        headers = block[:header_size] if header_size else None
        payload = block[header_size:]
        if sid is None:
            frames.append(Pub(subject, reply, payload, headers))
        else:
            frames.append(Msg(subject, sid, reply, payload, headers, self._line_size + self._need))
        self._head = None
        return end

    def _read_line(self, line: bytes, pos: int, frames: list[Frame]) -> None:
        """Append the frame of this line, or set `_head` and `_need` if a payload follows."""
        if len(line) > _line_limit(line):
            self._fail("control line is too long", pos, line)
        name = line.replace(b"\t", b" ").partition(b" ")[0].rstrip(b"\r")
        self._line_size = len(line) + 1
        reader = self._readers.get(name.upper())  # WIRE-2
        if reader is None:
            self._fail("unknown operation", pos, line)
        try:
            frame = reader(self, line[len(name) :].lstrip(b" \t").rstrip(b" \t\r"))  # WIRE-5
        except _Garbage as garbage:
            self._fail(garbage.args[0], pos, line)
        if frame is not None:
            frames.append(frame)

    def _fail(self, reason: str, pos: int, excerpt: bytes) -> NoReturn:
        raise ProtocolError(reason, self._offset + pos, excerpt[:64])

    # The grammar: one reader per operation. Each gets the rest of the line after the name.

    def _read_info(self, rest: bytes) -> Frame:  # WIRE-10
        info = Info(_json_object(rest))
        if self._follow_info and info.max_payload > 0:
            self._max_payload = min(info.max_payload, self._own_max_payload)
            self._sizes.clear()
        return info

    def _read_err(self, rest: bytes) -> Frame:  # WIRE-12
        if len(rest) >= 2 and rest[:1] == rest[-1:] == b"'":
            rest = rest[1:-1]
        return Err(_text.decode(rest))

    def _read_ping(self, rest: bytes) -> Frame:  # WIRE-11
        return Ping()

    def _read_pong(self, rest: bytes) -> Frame:  # WIRE-11
        return Pong()

    def _read_ok(self, rest: bytes) -> Frame:  # WIRE-11
        return Ok()

    def _read_connect(self, rest: bytes) -> Frame:
        return Connect(_json_object(rest))

    def _read_msg(self, rest: bytes) -> None:  # WIRE-8
        subject, sid, reply, size = _optional(_fields(rest), 2, 4)
        self._expect(subject, _number(sid), reply, 0, _number(size))

    def _read_hmsg(self, rest: bytes) -> None:  # WIRE-9
        subject, sid, reply, header_size, size = _optional(_fields(rest), 2, 5)
        self._expect(subject, _number(sid), reply, _number(header_size), _number(size))

    def _read_pub(self, rest: bytes) -> None:
        subject, reply, size = _optional(_fields(rest), 1, 3)
        self._expect(subject, None, reply, 0, _number(size))

    def _read_hpub(self, rest: bytes) -> None:
        subject, reply, header_size, size = _optional(_fields(rest), 1, 4)
        self._expect(subject, None, reply, _number(header_size), _number(size))

    def _read_sub(self, rest: bytes) -> Frame:
        subject, queue, sid = _optional(_fields(rest), 1, 3)
        return Sub(_text.decode(subject), _number(sid), _text.decode(queue))

    def _read_unsub(self, rest: bytes) -> Frame:
        fields = _fields(rest)
        if len(fields) not in (1, 2):
            raise _Garbage("UNSUB with %d fields" % len(fields))
        return Unsub(_number(fields[0]), _number(fields[1]) if len(fields) == 2 else 0)

    _FROM_SERVER: dict[bytes, Reader] = {  # noqa: RUF012 - a constant (WIRE-19)
        b"MSG": _read_msg,
        b"HMSG": _read_hmsg,
        b"INFO": _read_info,
        b"PING": _read_ping,
        b"PONG": _read_pong,
        b"+OK": _read_ok,
        b"-ERR": _read_err,
    }
    _FROM_CLIENT: dict[bytes, Reader] = {  # noqa: RUF012 - a constant (WIRE-18, WIRE-19)
        b"CONNECT": _read_connect,
        b"PUB": _read_pub,
        b"HPUB": _read_hpub,
        b"SUB": _read_sub,
        b"UNSUB": _read_unsub,
        b"PING": _read_ping,
        b"PONG": _read_pong,
    }

    def _expect(
        self, subject: bytes, sid: int | None, reply: bytes, header_size: int, size: int
    ) -> None:
        """Prepare for the payload that follows."""
        if header_size > size:
            raise _Garbage("header size %d is above the total size %d" % (header_size, size))
        if size - header_size > self._max_payload or size > self._max_payload + MAX_HEADERS:
            raise _Garbage("size %d is above max_payload %d" % (size, self._max_payload))
        self._head = (subject, sid, reply, header_size, size)
        self._need = size + 2


def _cut_alike(
    data: bytes, pos: int, fields: list[bytes], like: Msg, careful: bool, frames: list[Frame]
) -> int:
    """Append whole messages that follow `like` and have its control line, except for the reply.

    `fields` are those of that line. Return the position after the messages.
    """
    # Such lines are compared, not split, and their numbers are known: 0.5 us a message instead of
    # 0.8, and 0.37 without a reply.
    subject = like.raw_subject
    sid = like.sid
    reply = like.raw_reply
    has_reply = bool(reply)
    header_size = len(like.raw_headers or b"")
    size = header_size + len(like.data)
    start = b" ".join(fields[:3] if has_reply else fields) + (b" " if has_reply else b"\n")
    rest = b" " + b" ".join(fields[4:]) + b"\n"  # after the reply
    following = b"\r\n" + start  # after a payload: compared in one step, 0.06 us less
    new = object.__new__
    last = len(data) - 2
    more = data.startswith(start, pos)
    while more:
        body = pos + len(start)
        if has_reply:
            space = data.find(b" ", body)
            if not data.startswith(rest, space):
                break
            reply = data[body:space]
            # An LF: this message has no reply. The others as in `_scan`.
            if _LF in reply or (careful and (_TAB in reply or space + len(rest) - pos > MAX_LINE)):
                break
            body = space + len(rest)
        end = body + size
        more = data.startswith(following, end)
        if not more and (end > last or data[end] != _CR or data[end + 1] != _LF):
            break
        msg = new(Msg)  # as in `_scan`
        msg.raw_subject = subject
        msg.sid = sid
        msg.raw_reply = reply
        msg.raw_headers = None
        if header_size:
            msg.raw_headers = data[body : body + header_size]
            msg._headers = None  # pyright: ignore[reportPrivateUsage]
            body += header_size
        msg.data = data[body:end]
        end += 2
        msg.size = end - pos
        frames.append(msg)
        pos = end
    return pos


class _Pieces:  # D-WIRE-16
    """The received parts of an incomplete frame: joined once, with little overhead.

    Small reads are collected first, because a list of millions of them would take many times the
    memory of their bytes.
    """

    __slots__ = ("_large", "_small", "size")

    def __init__(self) -> None:
        self._large: list[bytes] = []
        self._small = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        if len(data) < _SMALL:
            self._small += data
            if len(self._small) < _SMALL:
                return
            data = b""
        self._large.append(bytes(self._small) + data)
        self._small = bytearray()

    def join(self, last: bytes) -> bytes:
        """Remove all pieces; return them joined, followed by the last one."""
        if not self.size:
            return last
        pieces = self._large
        pieces.append(bytes(self._small))
        pieces.append(last)
        self._large = []
        self._small = bytearray()
        self.size = 0
        return b"".join(pieces)


class _Garbage(Exception):
    """The problem that a reader finds in its line; `_read_line` adds the position."""


def _line_limit(line: bytes) -> int:
    """Return the limit: INFO and CONNECT have JSON that grows with the cluster or a JWT."""
    return MAX_JSON_LINE if line[:1] in (b"I", b"i", b"C", b"c") else MAX_LINE


def _fields(rest: bytes) -> list[bytes]:
    return [field for field in rest.replace(b"\t", b" ").split(b" ") if field]  # WIRE-3


def _optional(fields: list[bytes], index: int, count: int) -> list[bytes]:
    """Return `count` fields; if one is missing, an empty one is inserted at `index`."""
    if len(fields) == count - 1:
        fields.insert(index, b"")
    if len(fields) != count:
        raise _Garbage("%d fields, not %d or %d" % (len(fields), count - 1, count))
    return fields


def _json_object(text: bytes) -> dict[str, Any]:
    import json  # takes longer to import than this whole package

    try:
        value: Any = json.loads(text.decode())
    except (ValueError, RuntimeError):  # RuntimeError: nested deeper than the interpreter goes
        raise _Garbage("bad JSON") from None
    if not isinstance(value, dict):
        raise _Garbage("JSON is not an object")
    return value  # pyright: ignore[reportUnknownVariableType] - JSON keys are str


def _number(digits: bytes) -> int:
    if not _is_number(digits):
        raise _Garbage("%s is not a number" % _text.shorten(digits))
    return int(digits)


def _is_number(digits: bytes) -> bool:
    # int() would also take b"+1", b"1_0" and b" 1\r".
    return digits.isdigit() and len(digits) <= _MAX_DIGITS
