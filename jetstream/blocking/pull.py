"""Messages and pulls without async and await: the results of fetch and consume."""

from __future__ import annotations

from jetstream import message as _messages
from jetstream.machine import iteration as _iteration
from jetstream.machine.callbacks import CallbackRunner, sync_call
from jetstream.pull import batch as _fetching
from jetstream.pull import messages as _consuming
from jetstream.subscribe import pull as _pull_subscribe
from natsproto.hinting import add_hints, lazy_hints
from natsproto.port import blocking, blocking_next, blocking_next_to, blocking_to, run_sync
from natsproto.wire.text import show

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

    from jetstream.api.metadata import Metadata
    from jetstream.machine.snapshot import ConsumerSnapshot
    from jetstream.schema.consumer_info import ConsumerInfo
    from natsproto.errors import NatsError
    from natsproto.port import BlockingPort
    from natsproto.wire.headers import Headers


class JsMsg:
    """A message from JetStream: the attributes of Msg, its metadata, and its acknowledgments."""

    __slots__ = ("inner", "port")

    def __init__(self, inner: _messages.JsMsg, port: BlockingPort) -> None:
        self.inner: _messages.JsMsg = inner
        self.port: BlockingPort = port

    @property
    def subject(self) -> str:
        """The subject that the message was published to."""
        return self.inner.subject

    @property
    def reply(self) -> str:
        """The subject of acknowledgments, which is opaque."""
        return self.inner.reply

    @property
    def sid(self) -> int:
        """The id of the subscription that received the message."""
        return self.inner.sid

    @property
    def data(self) -> bytes:
        """The payload."""
        return self.inner.data

    @property
    def headers(self) -> Headers | None:
        """The headers, or None; raises HeaderError if they are invalid."""
        return self.inner.headers

    @property
    def status(self) -> int:
        """The inline status of the header block, or 0."""
        return self.inner.status

    @property
    def description(self) -> str:
        """The text after the inline status, or ""."""
        return self.inner.description

    @property
    def raw_subject(self) -> bytes:
        """The subject as received."""
        return self.inner.raw_subject

    @property
    def raw_reply(self) -> bytes:
        """The reply subject as received."""
        return self.inner.raw_reply

    @property
    def raw_headers(self) -> bytes | None:
        """The header block as received, or None."""
        return self.inner.raw_headers

    @property
    def size(self) -> int:
        """The length on the wire, including the control line."""
        return self.inner.size

    @property
    def metadata(self) -> Metadata:
        """Stream, consumer, sequences and time; raises NotJetStreamMessage if there are none."""
        return self.inner.metadata

    @property
    def settled(self) -> bool:
        """Whether the message needs no acknowledgment (anymore)."""
        return self.inner.settled

    def ack(self) -> None:
        """Acknowledge the message: it is not redelivered."""
        # Without the lock where that is possible, which saves 0.8 us; blocking(...) costs 0.6 more.
        if self.port.joins:
            self.inner.ack_nowait()
            return
        with self.port.lock:
            try:
                self.inner.ack_nowait()
            except BaseException:
                self.port.pump_soon()
                raise

    ack_sync = blocking(_messages.JsMsg.ack_sync)
    nak = blocking(_messages.JsMsg.nak)
    term = blocking(_messages.JsMsg.term)
    in_progress = blocking(_messages.JsMsg.in_progress)

    def __repr__(self) -> str:
        return repr(self.inner)


add_hints(
    JsMsg,
    "jetstream.api.attributes",
    "MESSAGE",
    "header respond is_acked double_ack nak_with_delay term_with_reason",
)


class Batch:
    """The messages of a fetch, as a sequence; `error` is the reason if it ended early."""

    __slots__ = ("_messages", "error")

    def __init__(self, inner: _consuming.Batch, port: BlockingPort) -> None:
        self._messages = _facades(list(inner), port)
        self.error: NatsError | None = inner.error

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: int) -> JsMsg:
        return self._messages[index]

    def __iter__(self) -> Iterator[JsMsg]:
        return iter(self._messages)

    def __repr__(self) -> str:
        return "<Batch of %d, error %s>" % (len(self), show(self.error))


class Fetch:
    """A fetch that yields each message when it arrives. Returned by Consumer.iter_fetch.

    The pull is sent when the iteration starts, and the iteration ends with the batch. If the pull
    fails, the error is raised after the messages that arrived before. If the loop is left early,
    the next fetch returns the messages that were not taken.
    """

    def __init__(self, inner: _fetching.Fetch, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    __next__ = blocking_next_to(JsMsg, _fetching.Fetch.__anext__)
    close = blocking(_fetching.Fetch.aclose)

    def snapshot(self) -> ConsumerSnapshot:
        """Return the current state of the iteration, without I/O.

        Its `reason` says why no message arrives. Nothing is requested before the iteration starts.
        """
        with self.port.lock:
            return self.inner.snapshot()

    def __iter__(self) -> Self:
        return self


class PullSubscription:
    """A consumer to fetch from. Returned by JetStream.pull_subscribe; end it with `unsubscribe`."""

    def __init__(self, inner: _pull_subscribe.PullSubscription, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return self.inner.stream

    @property
    def name(self) -> str:
        """The name of the consumer."""
        return self.inner.name

    @property
    def cached_info(self) -> ConsumerInfo | None:
        """The latest info of the consumer; None if the lookup failed."""
        return self.inner.cached_info

    @property
    def closed(self) -> bool:
        """Whether the subscription has ended."""
        return self.inner.closed

    info = blocking(_pull_subscribe.PullSubscription.info)
    fetch = blocking_to(Batch, _pull_subscribe.PullSubscription.fetch)
    unsubscribe = blocking(_pull_subscribe.PullSubscription.unsubscribe)

    def __enter__(self) -> PullSubscription:
        return self

    def __exit__(self, *exc: object) -> None:
        self.unsubscribe()

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "PULL_SUBSCRIPTION")

    def __repr__(self) -> str:
        return repr(self.inner)


class MachineEvents:
    """The events of an iteration: iterate them, or call `next`."""

    def __init__(self, inner: _iteration.MachineEvents, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    next = blocking(_iteration.MachineEvents.next)
    __next__ = blocking_next(_iteration.MachineEvents.__anext__)

    def __iter__(self) -> Self:
        return self


def _facades(messages: list[_messages.JsMsg], port: BlockingPort) -> list[JsMsg]:
    return [JsMsg(msg, port) for msg in messages]


def facade_or_none(msg: _messages.JsMsg | None, port: BlockingPort) -> JsMsg | None:
    """Return the facade of a message, or None."""
    return None if msg is None else JsMsg(msg, port)


class Iteration:
    """The common part of Messages and PushMessages."""

    def __init__(self, inner: _iteration.Iteration, port: BlockingPort) -> None:
        self.inner = inner
        self.port = port

    @property
    def pending(self) -> int:
        """Number of messages that are ready to be taken."""
        return self.inner.pending

    @property
    def closed(self) -> bool:
        """Whether the iteration has ended."""
        return self.inner.closed

    next = blocking_to(JsMsg, _iteration.Iteration.next)
    stop = blocking_to(_facades, _iteration.Iteration.stop)
    drain = blocking(_iteration.Iteration.drain)
    _next = blocking_next_to(JsMsg, _iteration.Iteration.__anext__)

    def run(
        self,
        callback: Callable[[JsMsg], object],
        *,
        concurrency: int = 1,
        nak: bool = False,
        on_error: Callable[[JsMsg, Exception], object] | None = None,
    ) -> None:
        """Call `callback(msg)` for each message, in up to `concurrency` threads at once.

        Returns when the iteration has ended and all callbacks are done. When a callback raises,
        `on_error(msg, error)` is called, and the next message is handled. Without `on_error`, or if
        that raises, no other callback starts, the running ones finish, the iteration stops, and the
        error is raised; `nak` as in `stop`.
        """
        port = self.port

        def make(msg: _messages.JsMsg) -> JsMsg:
            return JsMsg(msg, port)

        call = sync_call(callback, make)
        handler = None if on_error is None else sync_call(on_error, make, "on_error")
        # Not blocking(...): the lock is free during callbacks.
        run_sync(CallbackRunner(self.inner, call, nak, port, handler).run(port, concurrency))

    def poll(self) -> JsMsg | None:
        """Return the next message if that takes neither waiting nor I/O; otherwise None.

        None does not mean that there is no message; call `next`, or iterate, to wait for one.
        """
        with self.port.lock:
            return facade_or_none(self.inner.poll(), self.port)

    def snapshot(self) -> ConsumerSnapshot:
        """Return the current state, without I/O; its `reason` says why no message arrives."""
        with self.port.lock:
            return self.inner.snapshot()

    def __repr__(self) -> str:
        return _iteration.describe(type(self).__name__, self.snapshot)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> JsMsg:
        # The common case, without a coroutine.
        port = self.port
        if port.alone:
            msg = self.inner.poll()
        else:
            with port.lock:
                msg = self.inner.poll()
        if msg is not None:
            return JsMsg(msg, port)
        return self._next()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop(nak=self.inner.nak_on_exit)


class Messages(Iteration):
    """The messages of a consume(): iterate it. Returned by Consumer.consume.

    The iteration ends with `stop`, `drain`, `stop_after` or the end of the client. It raises if the
    consumer was deleted or cannot be pulled from. It survives all other errors, and reports them as
    `events`.
    """

    def __init__(self, inner: _consuming.Messages, port: BlockingPort) -> None:
        super().__init__(inner, port)
        self._consume = inner
        #: PullWarning, Pinned, Unpinned; for an ordered consumer ConsumerReset and StreamRecreated.
        #: Iterate, or call next.
        self.events: PullEvents = PullEvents(inner.events, port)

    @property
    def dropped(self) -> int:
        """Number of messages that were not requested, since the start: an error of the server."""
        return self._consume.dropped


class PullEvents(MachineEvents):
    """The events of a consume()."""
