"""Outbound: outgoing frames, and the publishes that wait for a connection.

    state      a publish is                                    leaves it by
    sending    appended to `frames`, which the adapter takes   take_back (the transport is lost),
                                                               hold (a lame duck is being left)
    holding    encoded and kept in a bounded buffer            release (the handshake is done)

A publish that was accepted is handed to the adapter once: now, or after the next handshake if the
adapter had not taken it when the transport was lost (RECON-7). The publishes of a machine are an
exception: they are dropped with the transport, because the machine makes new ones when it is
connected again (D-RECON-9).

`frames` holds whole frames and, for plain publishes, four pieces in a row: `PUB subject `, the
size and its CRLF, the payload, CRLF. They are joined when the adapter takes them. `size` is about
how many bytes that is. Above `high_water`, callers should wait for `writable`, which becomes ready
when the adapter has taken them.
"""

from __future__ import annotations

from natsproto.errors import (
    ConnectionClosed,
    InvalidSubject,
    NotSupported,
    PayloadTooLarge,
    PendingBufferFull,
)
from natsproto.wire import encode, subjects
from natsproto.wire.record import Record
from natsproto.wire.text import cut_middle

from .encoded import reply_of, size_of
from .waitable import Waitable

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from natsproto.wire.encode import BytesLike
    from natsproto.wire.frames import Info
    from natsproto.wire.headers import HeadersLike

    from .bus import Bus

# Larger frames and payloads go out alone: joining would copy them once more.
LARGE = 64 * 1024
# Enough for few system calls; more would be out of the cache when it is sent.
HIGH_WATER = 256 * 1024
_MAX_SUBJECTS = 1024
_MAX_REMEMBERED = 4096
_MAX_ENDING = 16
_MAX_ENDINGS = 64
_NO_LIMIT = 1 << 62


class Stats(Record):
    """Cumulative counters: messages and bytes on the wire, connections made, messages dropped.

    `dropped` messages have arrived, but the queue of their subscription was full.
    """

    __slots__ = ("connects", "dropped", "in_bytes", "in_msgs", "out_bytes", "out_msgs")

    def __init__(self) -> None:
        self.in_msgs: int = 0
        self.in_bytes: int = 0
        self.out_msgs: int = 0
        self.out_bytes: int = 0
        self.connects: int = 0
        self.dropped: int = 0

    @property
    def reconnects(self) -> int:
        """Count the connections after the first (EVENT-7)."""
        return max(0, self.connects - 1)


class Outbound:
    """The outgoing half of a connection."""

    __slots__ = (
        "_bus",
        "_endings",
        "_fleeting",
        "_held",
        "_held_size",
        "_inbox",
        "_info",
        "_large",
        "_max_pending",
        "_sizes",
        "answerable",
        "checked",
        "frames",
        "high_water",
        "holding",
        "max_payload",
        "size",
        "stats",
        "writable",
    )

    def __init__(self, bus: Bus, max_pending: int) -> None:
        self._bus = bus
        self._max_pending = max_pending  # bytes that may wait for a connection
        # D-RECON-17: a program that has little memory for one of them has little for both.
        self.high_water: int = min(HIGH_WATER, max_pending) if max_pending else HIGH_WATER
        self.stats: Stats = Stats()
        self.frames: list[bytes] = []
        self.size: int = 0
        self.writable: Waitable = Waitable()
        self._large = False  # whether any of the frames is large
        self._fleeting: list[int] = []  # positions in `frames` of machines' publishes
        self.holding: bool = True
        self._held: list[bytes] = []
        self._held_size = 0
        self._info: Info | None = None
        self.max_payload: int = _NO_LIMIT
        #: b"PUB subject " of each subject that was checked before.
        self.checked: dict[str, bytes] = {}
        self._endings: dict[bytes, bytes] = {}  # b" 4\r\n+ACK\r\n" of short responses
        self._sizes: dict[int, bytes] = {}  # b"16\r\n" of small sizes that were used before
        self._inbox = b"\n"  # how the reply subject of a request starts; so far none does
        #: Messages in `stats` whose sender waits for a response, and is thus notified of their
        #: loss.
        self.answerable: int = 0

    # Publishing

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        reply: str = "",
        headers: HeadersLike | None = None,
    ) -> bool:
        """Queue a PUB or HPUB, or raise LocalError, or PendingBufferFull without a connection.

        Return True if the port has to be flushed: this is the first frame since it took the last
        ones, or there are too many of them.
        """
        try:
            head = self.checked[subject]
        except (KeyError, TypeError):  # TypeError: the subject is not even hashable
            head = self.check_subject(subject)
        if not isinstance(data, bytes):
            data = encode.check_data(data)
        if reply or headers is not None or self.holding:
            to = subjects.check_publish(reply, "reply") if reply else b""
            block = None if headers is None else self.header_block(headers)
            return self._publish(head[4:-1], data, to, block)
        # The same as _publish for the plain case, in one call instead of five: 0.5 us, not 0.9. As
        # pieces, because frames of their own and the bytes that they are joined to are more memory
        # than the C library keeps: 25 us a message of 16 KiB, most of it page faults, not 8.
        size = self._sizes.get(len(data)) or self._size_line(data)
        self.frames += (head, size, data, b"\r\n")
        waiting = self.size
        self.size = waiting + len(head) + len(data) + 8
        self.stats.out_msgs += 1
        return not waiting or waiting > self.high_water

    def _publish(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None) -> bool:
        frame = self._encode(subject, data, reply, block)
        first = self._hold(frame) if self.holding else self.add(frame)
        self.stats.out_msgs += 1
        return first

    def respond(self, reply: bytes, data: bytes) -> bool:
        """Publish to an opaque reply subject; return True as `publish` does."""
        if not reply:
            raise InvalidSubject("message has no reply subject: its sender expects no response")
        ending = self._endings.get(data)
        if ending is None or self.holding:
            return self._respond(reply, data)
        # Most responses are acknowledgments: one call instead of five.
        frame = b"PUB " + reply + ending
        waiting = self.size
        self.frames.append(frame)
        self.size = waiting + len(frame)
        self.stats.out_msgs += 1
        return not waiting or waiting > self.high_water

    def _respond(self, reply: bytes, data: bytes) -> bool:
        first = self._publish(reply, data, b"", None)
        if len(data) <= _MAX_ENDING and len(self._endings) < _MAX_ENDINGS:
            self._endings[data] = b" %d\r\n%s\r\n" % (len(data), data)
        return first

    def request(self, head: bytes, data: bytes, reply: bytes, block: bytes | None) -> None:
        """Queue a request; `head` is its b"PUB subject "."""
        size = len(data)
        if block is not None:
            frame = self._encode(head[4:-1], data, reply, block)
        elif size > self.max_payload:
            raise self.too_large(size)
        else:
            frame = b"%s%s %d\r\n%s\r\n" % (head, reply, size, data)
        if self.holding:
            self._hold(frame)
        else:
            self.add(frame)
        self.stats.out_msgs += 1
        self.answerable += 1

    def send(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None) -> bool:
        """Queue a machine's publish, or raise NatsError; return True as `publish` does.

        Do not call this while publishes are being held.
        """
        if block is not None:
            frame = self._encode(subject, data, reply, block)
            self._fleeting.append(len(self.frames))
            self.stats.out_msgs += 1
            self.answerable += 1
            return self.add(frame)
        # In pieces, as in `publish`, and in one call instead of four: 0.5 us, not 0.9.
        size = self._sizes.get(len(data)) or self._size_line(data)
        head = b"PUB %s %s " % (subject, reply) if reply else b"PUB %s " % subject
        self._fleeting.append(len(self.frames))
        self.frames += (head, size, data, b"\r\n")
        waiting = self.size
        self.size = waiting + len(head) + len(data) + 8
        self.stats.out_msgs += 1
        self.answerable += 1
        return not waiting or waiting > self.high_water

    def send_all(self, frames: bytes, count: int) -> bool:
        """Queue `count` publishes of a machine, encoded and checked; return True as `publish` does.

        Do not call this while publishes are being held.
        """
        self._fleeting.append(len(self.frames))
        self.stats.out_msgs += count
        self.answerable += count
        return self.add(frames)

    def withdraw(self) -> None:
        """Withdraw the last publish, because the port rejects commands from its caller."""
        frames = self.frames
        if not frames:
            return  # the adapter has taken it in the meantime
        pieces = 1 if len(frames[-1]) > 2 else 4
        self.size -= sum([len(piece) for piece in frames[-pieces:]])
        frames[-pieces:] = []
        if not frames:
            self.clear()  # the sizes of pieces are only approximate
        self.stats.out_msgs -= 1

    # Checks

    def check_subject(self, subject: str) -> bytes:
        """Return b"PUB subject ", and remember it; raise InvalidSubject."""
        head = b"PUB %s " % subjects.check_publish(subject)
        if len(self.checked) >= _MAX_SUBJECTS:
            self.checked.clear()
        self.checked[subject] = head
        return head

    def header_block(self, headers: HeadersLike) -> bytes:
        """Encode headers, or raise NotSupported if the server is too old for them."""
        info = self._info
        if info is not None and not info.headers:
            raise NotSupported("server %s does not support headers" % cut_middle(info.version))
        return encode.header_block(headers)

    def _size_line(self, data: bytes) -> bytes:
        """Return the part of a PUB after the subject, or raise PayloadTooLarge."""
        size = len(data)
        if size > self.max_payload:
            raise self.too_large(size)
        line = b"%d\r\n" % size
        if size < _MAX_REMEMBERED:
            self._sizes[size] = line
        elif size > LARGE:
            self._large = True
        return line

    def _encode(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None) -> bytes:
        size = len(data) if block is None else len(data) + len(block)
        if size > self.max_payload:
            raise self.too_large(size)
        return encode.pub_checked(subject, data, reply, block)

    def too_large(self, size: int) -> PayloadTooLarge:
        """Return the error for a payload of this size."""
        text = "%d bytes of headers and payload exceed the server's max_payload %d"
        return PayloadTooLarge(text % (size, self.max_payload))

    # The queue of frames

    def add(self, frame: bytes) -> bool:
        """Queue any frame; return True if the port has to be flushed, as `publish` does."""
        if len(frame) > LARGE:
            self._large = True
        self.frames.append(frame)
        size = self.size
        self.size = size + len(frame)
        return not size or size > self.high_water

    def take(self) -> list[bytes]:
        """Take all frames for the transport, joined except for large ones."""
        frames = self.frames
        if not frames:
            return []
        if self.size > self.high_water:
            self._bus.ready.append(self.writable)
        if self._large:
            self.clear()
            return _joined(frames)
        self.frames = []  # like `clear`, without the call
        self.size = 0
        if self._fleeting:
            self._fleeting = []
        return [b"".join(frames)]

    def clear(self) -> None:
        """Drop all frames."""
        self.frames = []
        self.size = 0
        self._large = False
        self._fleeting = []

    def _take_publishes(self) -> list[bytes]:
        """Take the publishes, and drop frames that only concern the lost transport."""
        fleeting = set(self._fleeting)
        frames = self.frames
        self.clear()
        publishes: list[bytes] = []
        place = 0
        while place < len(frames):
            frame = frames[place]
            pieces = 1 if frame.endswith(b"\n") else 4
            if frame.startswith((b"PUB ", b"HPUB ")) and place not in fleeting:
                publishes.append(b"".join(frames[place : place + pieces]))
            place += pieces
        return publishes

    # Holding

    @property
    def pending_bytes(self) -> int:
        """The approximate number of bytes that wait to be sent, now or on the next connection."""
        return self.size + self._held_size

    @property
    def held(self) -> int:
        """The number of messages that wait for a connection."""
        return len(self._held)

    def _hold(self, frame: bytes) -> bool:
        if self._bus.closed:
            raise ConnectionClosed(self._bus.closed)
        if self._held_size + len(frame) > self._max_pending:  # RECON-8
            raise PendingBufferFull(
                "not connected, and %d bytes are already pending (max_pending_out %d)"
                % (self._held_size, self._max_pending)
            )
        self._held.append(frame)
        self._held_size += len(frame)
        return False

    def _set_held(self, frames: list[bytes]) -> None:
        self._held = frames
        self._held_size = sum([len(frame) for frame in frames])

    def learn(self, info: Info) -> None:
        """Adopt the limits of a server."""
        self._info = info
        self.max_payload = info.max_payload if info.max_payload > 0 else _NO_LIMIT
        self._sizes.clear()
        self._endings.clear()

    def hold(self) -> None:
        """Keep later publishes until `release`: this server is being left."""
        self.holding = True

    def release(self) -> list[bytes]:
        """Send the held publishes in the order in which they were accepted.

        D-RECON-14: a frame above the limit of this server would make it hang up, and all others
        would be lost with it. Return such frames instead.
        """
        self.holding = False
        refused: list[bytes] = []
        for frame in self._held:
            # A frame is longer than its payload, so most need no closer check.
            if len(frame) > self.max_payload and size_of(frame) > self.max_payload:
                refused.append(frame)
                self.stats.out_msgs -= 1
            else:
                self.add(frame)
        self._set_held([])
        return refused

    def take_back(self) -> None:
        """Keep the publishes that the adapter has not taken: the transport is lost."""
        self.holding = True
        self._set_held(self._take_publishes() + self._held)
        self._bus.ready.append(self.writable)  # there is room again, but elsewhere (RECON-12)

    def disclaim(self) -> None:
        """Drop everything that was published: another process sends it (D-RECON-13)."""
        self.clear()
        self._set_held([])

    def close(self) -> None:
        """Drop everything, for good."""
        self.disclaim()
        self.holding = True
        self._bus.ready.append(self.writable)

    # Counting, for the messages that the server has not confirmed. Requests and the publishes of
    # machines do not count: the callers that wait for their responses learn of their loss.

    def expect_replies(self, inbox: bytes) -> None:
        """Recognize a request by the start of its reply subject."""
        self._inbox = inbox

    @property
    def accepted(self) -> int:
        """The number of messages that were published so far."""
        return self.stats.out_msgs - self.answerable

    @property
    def passed(self) -> int:
        """The number of those that do not wait for a connection."""
        return self.accepted - self.count(self._held)

    @property
    def waits(self) -> bool:
        """Whether a published message waits for a connection."""
        return self.count(self._held) > 0

    def count(self, frames: list[bytes]) -> int:
        """Count the publishes among these frames that are not requests."""
        return len([frame for frame in frames if not self.is_request(frame)])

    def is_request(self, frame: bytes) -> bool:
        """Return whether a PUB or HPUB is a request, not a plain publish."""
        return reply_of(frame).startswith(self._inbox)

    def count_unsent(self) -> int:
        """Take all frames, and count the publishes that the adapter has not taken."""
        return self.count(self._take_publishes() + self._held)


def _joined(frames: list[bytes]) -> list[bytes]:
    """Join frames except for the large ones."""
    pieces: list[bytes] = []
    group: list[bytes] = []
    for frame in frames:
        if len(frame) > LARGE:
            pieces.append(b"".join(group))
            pieces.append(frame)
            group = []
        else:
            group.append(frame)
    pieces.append(b"".join(group))
    return [piece for piece in pieces if piece]
