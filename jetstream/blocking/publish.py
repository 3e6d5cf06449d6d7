"""Publishing without async and await: the windows and batches of JetStream, and publications."""

from __future__ import annotations

from jetstream.publish import atomic as _atomic
from jetstream.publish import fast as _fast
from jetstream.publish import window as _window
from jetstream.publish import window_machine as _machine
from natsproto.port import blocking, blocking_to

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from jetstream.events import Loss
    from jetstream.schema.pub_ack import PubAck
    from natsproto.errors import NatsError
    from natsproto.port import BlockingPort


class Publication:
    """A publish in progress."""

    __slots__ = ("inner", "port")

    def __init__(self, inner: _machine.Publication, port: BlockingPort) -> None:
        self.inner: _machine.Publication = inner
        self.port: BlockingPort = port

    @property
    def subject(self) -> str:
        """The subject of the message."""
        return self.inner.subject

    @property
    def done(self) -> bool:
        """Whether the publish is acknowledged or has failed."""
        return self.inner.done

    @property
    def ack(self) -> PubAck | None:
        """The acknowledgment, once it is `done` without an `error`."""
        return self.inner.ack

    @property
    def error(self) -> NatsError | None:
        """The error, if it failed."""
        return self.inner.error

    result = blocking(_machine.Publication.result)

    def __repr__(self) -> str:
        return repr(self.inner)


class PublishWindow:
    """Publishes that are acknowledged together. Returned by JetStream.publisher."""

    def __init__(self, inner: _window.PublishWindow, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    def __repr__(self) -> str:
        return repr(self.inner)

    @property
    def pending(self) -> int:
        """The number of publishes without an acknowledgment."""
        return self.inner.pending

    publish = blocking_to(Publication, _window.PublishWindow.publish)
    flush = blocking(_window.PublishWindow.flush)
    close = blocking(_window.PublishWindow.close)
    _exit = blocking(_window.PublishWindow.__aexit__)

    def abandon(self) -> None:
        """End the window without waiting; publishes without an acknowledgment fail."""
        with self.port.lock:
            self.inner.abandon()

    def __enter__(self) -> PublishWindow:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._exit(kind, *exc)


class AtomicBatch:
    """A batch that a stream stores as a whole or not at all. Returned by JetStream.atomic_batch."""

    def __init__(self, inner: _atomic.AtomicBatch, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    def __repr__(self) -> str:
        return repr(self.inner)

    @property
    def size(self) -> int:
        """Number of messages that were added."""
        return self.inner.size

    add = blocking(_atomic.AtomicBatch.add)
    commit = blocking(_atomic.AtomicBatch.commit)


class FastBatch:
    """Messages that a stream stores in order as they arrive. Returned by JetStream.fast_batch."""

    def __init__(self, inner: _fast.FastBatch, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def size(self) -> int:
        """Number of messages that were added."""
        return self.inner.size

    @property
    def stored(self) -> int:
        """Number of leading messages acknowledged as stored, minus those in `take_losses`."""
        return self.inner.stored

    @property
    def lost(self) -> int:
        """Number of messages that were lost or rejected, as far as the server has reported."""
        return self.inner.lost

    def take_losses(self) -> list[Loss]:
        """Return the losses that were reported since the last call."""
        with self.port.lock:
            return self.inner.take_losses()

    add = blocking(_fast.FastBatch.add)
    add_encoded = blocking(_fast.FastBatch.add_encoded)
    commit = blocking(_fast.FastBatch.commit)
    close = blocking(_fast.FastBatch.close)
    _exit = blocking(_fast.FastBatch.__aexit__)

    def __enter__(self) -> FastBatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._exit(kind, *exc)
