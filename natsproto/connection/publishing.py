"""Publishing: frames to the outbox, or to a bounded buffer while they have to wait.

A publish that was accepted is handed to the adapter once: now, or after the next handshake if the
adapter had not taken it when the transport was lost (RECON-7). What a machine ordered is an
exception: it lives and dies with the transport, because machines order anew when they are told of
the next connection (RECON-9).
"""

from __future__ import annotations

from natsproto.errors import (
    ConnectionClosed,
    InvalidSubject,
    NatsError,
    NotSupported,
    PayloadTooLarge,
    PendingBufferFull,
)
from natsproto.wire import encode, subjects
from natsproto.wire.frames import Info
from natsproto.wire.record import Record
from natsproto.wire.text import cut_middle

from .outbox import HIGH_WATER, LARGE, Outbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from natsproto.options import Options
    from natsproto.wire.encode import BytesLike
    from natsproto.wire.headers import HeadersLike

    from .effects import Publish
    from .waitable import Receiver, Waitable

_MAX_SUBJECTS = 1024
_MAX_REMEMBERED = 4096
_NO_LIMIT = 1 << 62

# What INFO leaves out when it no longer holds: servers omit empty lists and what is false.
_MOMENTARY = ("connect_urls", "ldm", "nonce", "ws_connect_urls")


class Stats(Record):
    """Since the start: messages and bytes on the wire, connections made."""

    __slots__ = ("connects", "in_bytes", "in_msgs", "out_bytes", "out_msgs")

    def __init__(self) -> None:
        self.in_msgs = 0
        self.in_bytes = 0
        self.out_msgs = 0
        self.out_bytes = 0
        self.connects = 0

    @property
    def reconnects(self) -> int:
        return max(0, self.connects - 1)


class Publishing:
    """What leaves; `Commands` adds what comes in for it."""

    # A connection has too many attributes for CPython to find them fast: 0.05 us a publish.
    __slots__ = (
        "_answerable",
        "_busy",
        "_checked",
        "_held",
        "_held_size",
        "_holding",
        "_max_payload",
        "_outbox",
        "_sizes",
        "closed",
        "info",
        "options",
        "stats",
    )

    def __init__(self, options: Options) -> None:
        self.options = options
        self.info: Info | None = None
        self.stats = Stats()
        self.closed = ""  # why, for good; "" while it is open
        self._max_payload = _NO_LIMIT
        self._outbox = Outbox()
        self._holding = True  # publishes wait
        self._held: list[bytes] = []
        self._held_size = 0
        self._checked: dict[str, bytes] = {}  # b"PUB subject " of subjects that were checked before
        self._sizes: dict[int, bytes] = {}  # b"16\r\n" of small sizes that were used before
        self._busy: list[Receiver] = []  # machines that have orders for us
        # Messages in `stats` that somebody expects an answer to, and so learns of their loss.
        self._answerable: int = 0

    def publish(
        self,
        subject: str,
        data: BytesLike = b"",
        reply: str = "",
        headers: HeadersLike | None = None,
    ) -> bool:
        """Queue a PUB or HPUB. LocalError: it cannot be sent. PendingBufferFull: it cannot wait.

        True: the port is to be told, because this is the first frame since it took the last ones,
        or because there are too many of them.
        """
        try:
            head = self._checked[subject]
        except (KeyError, TypeError):  # TypeError: not even a key, let alone a subject
            head = self._check_subject(subject)
        if not isinstance(data, bytes):
            data = encode.check_data(data)
        if reply or headers is not None or self._holding:
            to = subjects.check_publish(reply, "reply") if reply else b""
            block = None if headers is None else self._header_block(headers)
            return self._publish(head[4:-1], data, to, block)
        # The same as _publish for the plain case, in one call instead of five: 0.5 us, not 0.9. As
        # pieces, because frames of their own and the bytes that they are joined to are more memory
        # than the C library keeps: 25 us a message of 16 KiB, most of it page faults, not 8.
        size = self._sizes.get(len(data)) or self._size_of(data)
        outbox = self._outbox
        outbox.frames += (head, size, data, b"\r\n")
        waiting = outbox.size
        outbox.size = waiting + len(head) + len(data) + 8
        self.stats.out_msgs += 1
        return not waiting or waiting > HIGH_WATER

    def withdraw(self) -> None:
        """Take the last publish back: the port does not accept orders from where it was made."""
        if self._outbox.drop_last():
            self.stats.out_msgs -= 1

    def _size_of(self, data: bytes) -> bytes:
        """What follows the subject in a PUB; PayloadTooLarge if it cannot be sent."""
        self._check_size(len(data))
        size = b"%d\r\n" % len(data)
        if len(data) < _MAX_REMEMBERED:
            self._sizes[len(data)] = size
        elif len(data) > LARGE:
            self._outbox.large = True
        return size

    def _publish(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None) -> bool:
        frame = self._encode(subject, data, reply, block)
        first = self._hold(frame) if self._holding else self._outbox.add(frame)
        self.stats.out_msgs += 1
        return first

    def _encode(self, subject: bytes, data: bytes, reply: bytes, block: bytes | None) -> bytes:
        self._check_size(len(data) if block is None else len(data) + len(block))
        return encode.pub_checked(subject, data, reply, block)

    def _check_size(self, size: int) -> None:
        if size > self._max_payload:
            raise PayloadTooLarge(self._too_large(size))

    def _too_large(self, size: int) -> str:
        text = "%d bytes of headers and payload are above the server's max_payload %d"
        return text % (size, self._max_payload)

    def respond(self, reply: bytes, data: bytes) -> bool:
        """Publish to a reply subject as it came, which is opaque; True as from `publish`."""
        if not reply:
            raise InvalidSubject("the message has no reply subject: nobody wants an answer")
        if self._holding or len(data) > min(_MAX_REMEMBERED, self._max_payload):
            return self._publish(reply, data, b"", None)
        # An acknowledgement, mostly: in one call instead of five.
        frame = b"PUB %s %d\r\n%s\r\n" % (reply, len(data), data)
        outbox = self._outbox
        waiting = outbox.size
        outbox.frames.append(frame)
        outbox.size = waiting + len(frame)
        self.stats.out_msgs += 1
        return not waiting or waiting > HIGH_WATER

    def perform(self, receiver: Receiver) -> None:
        """Carry out what a machine has ordered since it was asked last.

        Without a connection nothing is done: the machine orders again when it is told of one. What
        cannot be sent at all goes back to it as `unsent`.
        """
        for order in receiver.take_orders():
            if self._holding:
                continue
            try:
                self.send(order)
            except NatsError as error:
                receiver.unsent(order, error)

    def send(self, order: Publish) -> None:
        """One order, at once; NatsError if it cannot be sent at all. To be called while online."""
        frame = self._encode(order.subject, order.data, order.reply, order.block)
        self._outbox.add(frame, fleeting=True)
        self.stats.out_msgs += 1
        self._answerable += 1

    def _check_subject(self, subject: str) -> bytes:
        head = b"PUB %s " % subjects.check_publish(subject)
        if len(self._checked) >= _MAX_SUBJECTS:
            self._checked.clear()
        self._checked[subject] = head
        return head

    def _header_block(self, headers: HeadersLike) -> bytes:
        if self.info is not None and not self.info.headers:
            text = "server %s does not support headers" % cut_middle(self.info.version)
            raise NotSupported(text)
        return encode.header_block(headers)

    def _hold(self, frame: bytes) -> bool:
        self._check_open()
        if self._held_size + len(frame) > self.options.max_pending_out:  # RECON-8
            raise PendingBufferFull(
                "not connected, and %d bytes wait already (max_pending_out %d)"
                % (self._held_size, self.options.max_pending_out)
            )
        self._held.append(frame)
        self._held_size += len(frame)
        return False

    def _check_open(self) -> None:
        if self.closed:
            raise ConnectionClosed(self.closed)

    @property
    def held(self) -> int:
        """How many messages wait for a connection."""
        return len(self._held)

    @property
    def congested(self) -> bool:
        """Whether callers should wait for `writable` before they publish more."""
        return self._outbox.size > HIGH_WATER

    @property
    def writable(self) -> Waitable:
        return self._outbox.writable

    def _learn(self, info: Info, *, first: bool = False) -> None:
        if not first and self.info is not None:
            info = _update(self.info, info)
        self.info = info
        self._max_payload = info.max_payload if info.max_payload > 0 else _NO_LIMIT
        self._sizes.clear()

    def _release(self) -> list[bytes]:
        """Send what was held, in the order in which it was accepted.

        RECON-14: a frame above the limit of this server would make it hang up, and all others
        would be lost with it. Such frames are returned instead.
        """
        self._holding = False
        refused: list[bytes] = []
        for frame in self._held:
            # A frame is longer than its payload: most need no closer look.
            if len(frame) > self._max_payload and size_of(frame) > self._max_payload:
                refused.append(frame)
                self.stats.out_msgs -= 1
            else:
                self._outbox.add(frame)
        self._set_held([])
        return refused

    def _take_back(self) -> None:
        """The transport is gone: what the adapter has not taken waits for the next one."""
        self._holding = True
        self._set_held(self._outbox.only_publishes() + self._held)

    def _set_held(self, frames: list[bytes]) -> None:
        self._held = frames
        self._held_size = sum([len(frame) for frame in frames])


def _words(frame: bytes) -> list[bytes]:
    """Return the first line of a PUB or HPUB: its name, the subject, a reply or not, the sizes."""
    return frame[: frame.find(b"\r\n")].split(b" ")


def subject_of(frame: bytes) -> bytes:
    """Return the subject of a PUB or HPUB."""
    return _words(frame)[1]


def reply_of(frame: bytes) -> bytes:
    """Return its reply subject, b"" if it has none."""
    words = _words(frame)
    return words[2] if len(words) == (5 if words[0] == b"HPUB" else 4) else b""


def size_of(frame: bytes) -> int:
    """Return the size of its headers and payload together."""
    return int(_words(frame)[-1])


def _update(known: Info, later: Info) -> Info:
    """CONN-36: what a later INFO does not say, as that of a proxy, is still as it was."""
    fields = {name: known.fields[name] for name in known.fields if name not in _MOMENTARY}
    for name in later.fields:
        if later.fields[name] is not None:
            fields[name] = later.fields[name]
    return Info(fields)
