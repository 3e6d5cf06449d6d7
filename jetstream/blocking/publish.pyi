# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Iterable

from typing_extensions import Unpack

from jetstream.events import Loss
from jetstream.publish import atomic as _atomic
from jetstream.publish import fast as _fast
from jetstream.publish import window as _window
from jetstream.publish import window_machine as _machine
from jetstream.publish.headers import PublishOptions
from jetstream.schema.pub_ack import PubAck
from natsproto.errors import NatsError
from natsproto.port import BlockingPort
from natsproto.wire.encode import BytesLike

class Publication:
    """A publish in progress."""

    __slots__ = ("inner", "port")
    inner: _machine.Publication
    port: BlockingPort

    def __init__(self, inner: _machine.Publication, port: BlockingPort) -> None: ...
    @property
    def subject(self) -> str:
        """The subject of the message."""
        ...

    @property
    def done(self) -> bool:
        """Whether the publish is acknowledged or has failed."""
        ...

    @property
    def ack(self) -> PubAck | None:
        """The acknowledgment, once it is `done` without an `error`."""
        ...

    @property
    def error(self) -> NatsError | None:
        """The error, if it failed."""
        ...

    def result(self) -> PubAck:
        """Wait for the acknowledgment; raise the error that made the publish fail."""
        ...

    def __repr__(self) -> str: ...

class PublishWindow:
    """Publishes that are acknowledged together. Returned by JetStream.publisher."""

    inner: _window.PublishWindow
    port: BlockingPort

    def __init__(self, inner: _window.PublishWindow, port: BlockingPort) -> None: ...
    def __repr__(self) -> str: ...
    @property
    def pending(self) -> int:
        """The number of publishes without an acknowledgment."""
        ...

    def publish(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> Publication:
        """Publish with the options of JetStream.publish; wait only while the window is full.

        `await publication.result()` returns the PubAck. Failures that were not raised that way are
        raised by `flush`, or by this call once there are as many as the window has room for.
        """
        ...

    def flush(self) -> None:
        """Wait until every publish is acknowledged or has failed; raise PublishesFailed."""
        ...

    def close(self) -> None:
        """Flush, and end the window."""
        ...

    def abandon(self) -> None:
        """End the window without waiting; publishes without an acknowledgment fail."""
        ...

    def __enter__(self) -> PublishWindow: ...
    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None: ...

class AtomicBatch:
    """A batch that a stream stores as a whole or not at all. Returned by JetStream.atomic_batch."""

    inner: _atomic.AtomicBatch
    port: BlockingPort

    def __init__(self, inner: _atomic.AtomicBatch, port: BlockingPort) -> None: ...
    def __repr__(self) -> str: ...
    @property
    def size(self) -> int:
        """Number of messages that were added."""
        ...

    def add(self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]) -> None:
        """Add a message, with the options of JetStream.publish.

        The first one is acknowledged, so a stream without allow_atomic rejects it at once. It is
        sent again while the stream has no leader, for 10 s at most and within the timeout.
        """
        ...

    def commit(
        self, subject: str = "", data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> PubAck:
        """Send the last message, or none if there is no subject; return when all are stored.

        Committing without a message needs nats-server 2.14. ApiError: none of the messages is
        stored. PublishInDoubt: either all are or none.
        """
        ...

class FastBatch:
    """Messages that a stream stores in order as they arrive. Returned by JetStream.fast_batch."""

    inner: _fast.FastBatch
    port: BlockingPort

    def __init__(self, inner: _fast.FastBatch, port: BlockingPort) -> None: ...
    @property
    def size(self) -> int:
        """Number of messages that were added."""
        ...

    @property
    def stored(self) -> int:
        """Number of leading messages acknowledged as stored, minus those in `take_losses`."""
        ...

    @property
    def lost(self) -> int:
        """Number of messages that were lost or rejected, as far as the server has reported."""
        ...

    def take_losses(self) -> list[Loss]:
        """Return the losses that were reported since the last call."""
        ...

    def add(self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]) -> int:
        """Add a message, with the options of JetStream.publish; return its number, from 1.

        Wait while too many messages are unacknowledged, and for the answer to the first one, which
        is sent again while the stream has no leader.
        """
        ...

    def add_encoded(self, messages: Iterable[tuple[bytes, bytes, bytes | None]]) -> None:
        """Add many messages: subject, payload, and header block, which the caller has checked."""
        ...

    def commit(
        self, subject: str, data: BytesLike = b"", **options: Unpack[PublishOptions]
    ) -> PubAck:
        """Add the last message; return when all are stored."""
        ...

    def close(self) -> PubAck | None:
        """End the batch; return when all messages are stored, with None if there were none."""
        ...

    def __enter__(self) -> FastBatch: ...
    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None: ...
