# Written by `python -m tests.facades`. Do not edit.

from collections.abc import Callable, Iterator

from typing_extensions import Self

from jetstream import message as _messages
from jetstream.api.metadata import Metadata
from jetstream.machine import iteration as _iteration
from jetstream.machine.snapshot import ConsumerSnapshot
from jetstream.pull import batch as _fetching
from jetstream.pull import messages as _consuming
from jetstream.schema.consumer_info import ConsumerInfo
from jetstream.subscribe import pull as _pull_subscribe
from natsproto.durations import Seconds
from natsproto.errors import NatsError
from natsproto.port import BlockingPort
from natsproto.wire.headers import Headers
from natsproto.wire.record import Record

class JsMsg:
    """A message from JetStream: the attributes of Msg, its metadata, and its acknowledgments."""

    __slots__ = ("inner", "port")
    inner: _messages.JsMsg
    port: BlockingPort

    def __init__(self, inner: _messages.JsMsg, port: BlockingPort) -> None: ...
    @property
    def subject(self) -> str:
        """The subject that the message was published to."""
        ...

    @property
    def reply(self) -> str:
        """The subject of acknowledgments, which is opaque."""
        ...

    @property
    def sid(self) -> int:
        """The id of the subscription that received the message."""
        ...

    @property
    def data(self) -> bytes:
        """The payload."""
        ...

    @property
    def headers(self) -> Headers | None:
        """The headers, or None; raises HeaderError if they are invalid."""
        ...

    @property
    def status(self) -> int:
        """The inline status of the header block, or 0."""
        ...

    @property
    def description(self) -> str:
        """The text after the inline status, or ""."""
        ...

    @property
    def raw_subject(self) -> bytes:
        """The subject as received."""
        ...

    @property
    def raw_reply(self) -> bytes:
        """The reply subject as received."""
        ...

    @property
    def raw_headers(self) -> bytes | None:
        """The header block as received, or None."""
        ...

    @property
    def size(self) -> int:
        """The length on the wire, including the control line."""
        ...

    @property
    def metadata(self) -> Metadata:
        """Stream, consumer, sequences and time; raises NotJetStreamMessage if there are none."""
        ...

    @property
    def settled(self) -> bool:
        """Whether the message needs no acknowledgment (anymore)."""
        ...

    def ack(self) -> None:
        """Acknowledge the message: it is not redelivered."""
        ...

    def ack_sync(self, timeout: Seconds = 5.0) -> None:
        """Acknowledge the message, and wait until the server confirms it.

        After TimeoutExpired the result is unknown: perhaps only the confirmation was lost. The
        message is then not settled, and the call can be repeated. Raises NoResponders if the
        consumer was deleted.
        """
        ...

    def nak(self, delay: Seconds | None = None) -> None:
        """Reject the message: it is redelivered, at once or after `delay` seconds."""
        ...

    def term(self, reason: str = "") -> None:
        """Terminate the message: it is not redelivered. The reason appears in the advisory.

        Servers before 2.10.4 do not support reasons: the message is terminated without one.
        """
        ...

    def in_progress(self) -> None:
        """Restart the time for the acknowledgment. Can be called repeatedly."""
        ...

    def __repr__(self) -> str: ...

class Batch:
    """The messages of a fetch, as a sequence; `error` is the reason if it ended early."""

    __slots__ = ("_messages", "error")
    error: NatsError | None

    def __init__(self, inner: _consuming.Batch, port: BlockingPort) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> JsMsg: ...
    def __iter__(self) -> Iterator[JsMsg]: ...
    def __repr__(self) -> str: ...

class Fetch:
    """A fetch that yields each message when it arrives. Returned by Consumer.iter_fetch.

    The pull is sent when the iteration starts, and the iteration ends with the batch. If the pull
    fails, the error is raised after the messages that arrived before. If the loop is left early,
    the next fetch returns the messages that were not taken.
    """

    inner: _fetching.Fetch
    port: BlockingPort

    def __init__(self, inner: _fetching.Fetch, port: BlockingPort) -> None: ...
    def __next__(self) -> JsMsg: ...
    def close(self) -> None:
        """End the iteration now, without waiting for the garbage collector."""
        ...

    def snapshot(self) -> ConsumerSnapshot:
        """Return the current state of the iteration, without I/O.

        Its `reason` says why no message arrives. Nothing is requested before the iteration starts.
        """
        ...

    def __iter__(self) -> Self: ...

class PullSubscription:
    """A consumer to fetch from. Returned by JetStream.pull_subscribe; end it with `unsubscribe`."""

    inner: _pull_subscribe.PullSubscription
    port: BlockingPort

    def __init__(self, inner: _pull_subscribe.PullSubscription, port: BlockingPort) -> None: ...
    @property
    def stream(self) -> str:
        """The name of its stream."""
        ...

    @property
    def name(self) -> str:
        """The name of the consumer."""
        ...

    @property
    def cached_info(self) -> ConsumerInfo | None:
        """The latest info of the consumer; None if the lookup failed."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the subscription has ended."""
        ...

    def info(self) -> ConsumerInfo:
        """Return the configuration and the state of the consumer; raise ConsumerNotFound."""
        ...

    def fetch(self, batch: int = 1, timeout: Seconds = 5.0) -> Batch:
        """Fetch up to `batch` available messages; if there are none, wait for the first.

        It raises TimeoutExpired if none arrives within `timeout`, as other clients do;
        Consumer.fetch waits for a full batch, and returns an empty one instead. If the pull fails
        after messages arrived, the batch has them, and the `error`.
        """
        ...

    def unsubscribe(self) -> None:
        """End the subscription, and delete the consumer if it belongs to it.

        A waiting fetch raises. Messages left over from a canceled fetch are nak'd.
        """
        ...

    def __enter__(self) -> PullSubscription: ...
    def __exit__(self, *exc: object) -> None: ...
    def __repr__(self) -> str: ...

class MachineEvents:
    """The events of an iteration: iterate them, or call `next`."""

    inner: _iteration.MachineEvents
    port: BlockingPort

    def __init__(self, inner: _iteration.MachineEvents, port: BlockingPort) -> None: ...
    def next(self, timeout: Seconds | None = None) -> Record:
        """Return the next event; raise TimeoutExpired, or ConnectionClosed after the last one."""
        ...

    def __next__(self) -> Record: ...
    def __iter__(self) -> Self: ...

def facade_or_none(msg: _messages.JsMsg | None, port: BlockingPort) -> JsMsg | None:
    """Return the facade of a message, or None."""
    ...

class Iteration:
    """The common part of Messages and PushMessages."""

    inner: _iteration.Iteration
    port: BlockingPort

    def __init__(self, inner: _iteration.Iteration, port: BlockingPort) -> None: ...
    @property
    def pending(self) -> int:
        """Number of messages that are ready to be taken."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the iteration has ended."""
        ...

    def next(self, timeout: Seconds | None = None) -> JsMsg:
        """Return the next message; raise TimeoutExpired, or InvalidState at the end."""
        ...

    def stop(self, *, nak: bool = False) -> list[JsMsg]:
        """End now, and return the messages that were not taken.

        nak  return them to the consumer; otherwise they are redelivered after their ack wait
        """
        ...

    def drain(self, timeout: Seconds = 10.0) -> None:
        """Request no more messages; the iteration ends after those in flight."""
        ...

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
        ...

    def poll(self) -> JsMsg | None:
        """Return the next message if that takes neither waiting nor I/O; otherwise None.

        None does not mean that there is no message; call `next`, or iterate, to wait for one.
        """
        ...

    def snapshot(self) -> ConsumerSnapshot:
        """Return the current state, without I/O; its `reason` says why no message arrives."""
        ...

    def __repr__(self) -> str: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> JsMsg: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...

class Messages(Iteration):
    """The messages of a consume(): iterate it. Returned by Consumer.consume.

    The iteration ends with `stop`, `drain`, `stop_after` or the end of the client. It raises if the
    consumer was deleted or cannot be pulled from. It survives all other errors, and reports them as
    `events`.
    """

    events: PullEvents

    def __init__(self, inner: _consuming.Messages, port: BlockingPort) -> None: ...
    @property
    def dropped(self) -> int:
        """Number of messages that were not requested, since the start: an error of the server."""
        ...

class PullEvents(MachineEvents):
    """The events of a consume()."""
