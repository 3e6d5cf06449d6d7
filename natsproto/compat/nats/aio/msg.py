"""Msg: a message with a connection, which can respond and acknowledge."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jetstream.api.metadata import read_metadata
from jetstream.errors import NotJetStreamMessage
from natsproto.compat.nats.errors import Error, MsgAlreadyAckdError, NotJSMessageError

from .headers import sendable

if TYPE_CHECKING:
    from .client import Client

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


@dataclass
class Msg:
    """A message, as callbacks and iterators receive it.

    `headers` is a dict, or None if the message has none. `respond` and the acknowledgments need
    the client that received the message.
    """

    _client: Client
    subject: str = ""
    reply: str = ""
    data: bytes = b""
    headers: dict[str, str] | None = None
    _metadata: Msg.Metadata | None = None
    _ackd: bool = False
    _sid: int | None = None

    class Ack:
        """The payloads of acknowledgments, and the positions of tokens in their subject."""

        Ack = b"+ACK"
        Nak = b"-NAK"
        Progress = b"+WPI"
        Term = b"+TERM"

        Prefix0 = "$JS"
        Prefix1 = "ACK"
        Domain = 2
        AccHash = 3
        Stream = 4
        Consumer = 5
        NumDelivered = 6
        StreamSeq = 7
        ConsumerSeq = 8
        Timestamp = 9
        NumPending = 10

    @property
    def header(self) -> dict[str, str] | None:
        """The headers, by their other name."""
        return self.headers

    @property
    def is_acked(self) -> bool:
        """Whether the message was acknowledged, negatively or terminally included."""
        return self._ackd

    @property
    def sid(self) -> int:
        """The id of the subscription that received the message."""
        if self._sid is None:
            raise Error("sid not set")
        return self._sid

    async def respond(self, data: bytes) -> None:
        """Publish a response, with the headers of this message."""
        if not self.reply:
            raise Error("no reply subject available")
        if not self._client:
            raise Error("client not set")
        await self._client.publish(self.reply, data, headers=sendable(self.headers))

    async def ack(self) -> None:
        """Acknowledge the message, without waiting for a confirmation."""
        self._check_reply()
        await self._client._acknowledge(self.reply, b"")
        self._ackd = True

    async def ack_sync(self, timeout: float | None = 1.0) -> Msg:
        """Acknowledge the message and wait until the server has confirmed it."""
        self._check_reply()
        confirmation = await self._client.request(self.reply, timeout=timeout)
        self._ackd = True
        return confirmation

    async def nak(self, delay: float | None = None) -> None:
        """Have the message redelivered, now or after a delay in seconds."""
        self._check_reply()
        payload = Msg.Ack.Nak
        if delay:
            payload += b" " + json.dumps({"delay": int(delay * 1_000_000_000)}).encode()
        await self._client._acknowledge(self.reply, payload)
        self._ackd = True

    async def in_progress(self) -> None:
        """Reset the time within which the message must be acknowledged."""
        if not self.reply:
            raise NotJSMessageError
        await self._client._acknowledge(self.reply, Msg.Ack.Progress)

    async def term(self) -> None:
        """Terminate the message: it is not redelivered."""
        self._check_reply()
        await self._client._acknowledge(self.reply, Msg.Ack.Term)
        self._ackd = True

    @property
    def metadata(self) -> Msg.Metadata:
        """The place of the message in its stream; raises NotJSMessageError without one."""
        if self._metadata is None:
            self._metadata = Msg.Metadata._from_reply(self.reply)
        return self._metadata

    def _check_reply(self) -> None:
        if not self.reply:
            raise NotJSMessageError
        if self._ackd:
            raise MsgAlreadyAckdError(self)

    @dataclass(frozen=True)
    class Metadata:
        """The metadata in the reply subject of a message from a JetStream consumer.

        num_pending    the number of messages that the consumer has yet to deliver
        num_delivered  the number of deliveries of this message, this one included
        """

        sequence: Msg.Metadata.SequencePair
        num_pending: int
        num_delivered: int
        timestamp: datetime.datetime
        stream: str
        consumer: str
        domain: str | None = None

        @dataclass(frozen=True)
        class SequencePair:
            """The sequences of the delivery and of the message in its stream."""

            consumer: int
            stream: int

        @classmethod
        def _from_reply(cls, reply: str) -> Msg.Metadata:
            try:
                found = read_metadata(reply.encode("utf-8", "surrogateescape"))
            except NotJetStreamMessage:
                raise NotJSMessageError from None
            return cls(
                sequence=cls.SequencePair(consumer=found.consumer_seq, stream=found.stream_seq),
                num_pending=found.pending,
                num_delivered=found.delivered,
                timestamp=_EPOCH + datetime.timedelta(microseconds=found.timestamp_ns // 1000),
                stream=found.stream,
                consumer=found.consumer,
                domain=found.domain or None,
            )


def build(client: Client, raw: Any, headers: dict[str, str] | None) -> Msg:
    """Return the message of this layer for one of the wire protocol."""
    return client.msg_class(client, raw.subject, raw.reply, raw.data, headers, None, False, raw.sid)
