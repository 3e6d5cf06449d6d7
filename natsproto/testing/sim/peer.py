"""Peer: the server's end of one connection."""

from __future__ import annotations

from natsproto.wire.frames import Connect, Ping, Pong, Pub, Sub, Unsub
from natsproto.wire.parser import Parser
from natsproto.wire.subjects import matches

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class Server(Protocol):
        """The receiver of a peer's reports."""

        def published(self, __peer: Peer, __pub: Pub) -> None: ...
        def subscribed(self, __peer: Peer) -> None: ...


INFO = b'INFO {"server_id":"S","version":"2.15.1","headers":true,"max_payload":1048576} \r\n'


def status_block(line: str, messages: int | None = None, size: int = 0, header: str = "") -> bytes:
    """Return the header block of a status, with the undelivered count of its pull if reported."""
    if messages is not None:
        header = f"Nats-Pending-Messages: {messages}\r\nNats-Pending-Bytes: {size}\r\n"
    return f"NATS/1.0 {line}\r\n{header}\r\n".encode()


class Subscription:
    """A subscription, as the server knows it."""

    __slots__ = ("exact", "left", "queue", "sid", "subject")

    def __init__(self, sid: int, subject: bytes, queue: str) -> None:
        self.sid: int = sid
        self.subject: bytes = subject
        self.queue: str = queue
        self.left: int = -1  # messages until it ends by itself; -1: it does not
        self.exact: bool = b"*" not in subject and b">" not in subject

    def matches(self, subject: bytes) -> bool:
        """Return whether a message with this subject is for it."""
        if self.exact or self.subject == subject:
            return self.subject == subject
        return matches(self.subject.decode(), subject.decode())


class Peer:
    """The server's end of one connection: it parses, knows the subscriptions, and writes frames."""

    def __init__(self, server: Server, send: Callable[[bytes], object], info: bytes = INFO) -> None:
        self._server = server
        self._send = send
        self._parser = Parser(peer="client")
        self._subs: list[Subscription] = []
        self.options: dict[str, Any] = {}  # those of CONNECT
        self.alive: bool = True
        send(info)

    def receive(self, data: bytes) -> None:
        """Handle bytes of the client."""
        for frame in self._parser.feed(data):
            if isinstance(frame, Ping):
                self._send(b"PONG\r\n")
            elif isinstance(frame, Sub):
                self._subscribe(Subscription(frame.sid, frame.subject.encode(), frame.queue))
            elif isinstance(frame, Unsub):
                self._unsubscribe(frame.sid, frame.after)
            elif isinstance(frame, Pub):
                self._server.published(self, frame)
            elif isinstance(frame, Connect):
                self.options = frame.fields
            else:
                assert isinstance(frame, Pong), frame

    def _subscribe(self, sub: Subscription) -> None:
        self._subs = [each for each in self._subs if each.sid != sub.sid]
        self._subs.append(sub)
        self._server.subscribed(self)

    def _unsubscribe(self, sid: int, after: int) -> None:
        for sub in self.subs:
            if sub.sid == sid:
                sub.left = after
                if not after:
                    self._subs.remove(sub)

    @property
    def subs(self) -> list[Subscription]:
        """The subscriptions, in the order in which they were made."""
        return list(self._subs)

    def drop(self, sub: Subscription) -> None:
        """End a subscription, as a server does that denies it."""
        self._subs.remove(sub)

    def find(self, subject: bytes) -> Subscription | None:
        """Return the first subscription that a message with this subject is for."""
        if self.alive:
            for sub in self._subs:
                if sub.matches(subject):
                    return sub
        return None

    def sid(self, subject: bytes) -> int:
        """Return the id of the subscription that a reply goes to; 0 without interest."""
        sub = self.find(subject)
        return 0 if sub is None else sub.sid

    def deliver(
        self, interest: bytes, subject: bytes, reply: bytes, block: bytes | None, data: bytes
    ) -> None:
        """Send a message to the subscription to `interest`, if there is one."""
        sub = self.find(interest)
        if sub is not None:
            self.deliver_to(sub, subject, reply, block, data)

    def deliver_to(
        self, sub: Subscription, subject: bytes, reply: bytes, block: bytes | None, data: bytes
    ) -> None:
        """Send a message to a subscription."""
        to = reply + b" " if reply else b""
        if block is None:
            self._send(b"MSG %s %d %s%d\r\n%s\r\n" % (subject, sub.sid, to, len(data), data))
        else:
            head = (subject, sub.sid, to, len(block), len(block) + len(data), block, data)
            self._send(b"HMSG %s %d %s%d %d\r\n%s%s\r\n" % head)
        if sub.left > 0:
            sub.left -= 1
            if not sub.left:
                self._subs.remove(sub)

    def refuse(self, text: str) -> None:
        """Send -ERR with this text."""
        self._send(f"-ERR '{text}'\r\n".encode())
