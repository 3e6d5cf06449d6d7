"""Metadata: stream, consumer, sequences and time, from the reply subject of a delivered message.

    $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
    $JS.ACK.<domain>.<account hash>.<stream>.<consumer>. ... .<pending>[.<more>]

The subject has nine tokens, or eleven and more from servers that include the domain; the domain `_`
means none. Acknowledgments are sent to the subject byte for byte.

Machines read a part of it for every message: `read_place` and `read_consumer_seq`.
"""

from __future__ import annotations

from jetstream.errors import NotJetStreamMessage
from natsproto.hinting import add_hints
from natsproto.wire import text as _text
from natsproto.wire.record import Record
from natsproto.wire.text import shorten

ACK_PREFIX = b"$JS.ACK."
MOST_DIGITS = 20  # the digits of the largest uint64


class Metadata(Record):
    """The metadata of a delivered message.

    delivered      the number of deliveries of this message, this one included
    stream_seq     the sequence of the message in the stream
    consumer_seq   the sequence of this delivery by the consumer
    timestamp_ns   the time at which it was stored, in nanoseconds since 1970
    pending        the number of messages that the consumer has yet to deliver
    """

    __slots__ = (
        "consumer",
        "consumer_seq",
        "delivered",
        "domain",
        "pending",
        "stream",
        "stream_seq",
        "timestamp_ns",
    )

    def __init__(
        self,
        stream: str,
        consumer: str,
        domain: str,
        delivered: int,
        stream_seq: int,
        consumer_seq: int,
        timestamp_ns: int,
        pending: int,
    ) -> None:
        self.stream: str = stream
        self.consumer: str = consumer
        self.domain: str = domain
        self.delivered: int = delivered
        self.stream_seq: int = stream_seq
        self.consumer_seq: int = consumer_seq
        self.timestamp_ns: int = timestamp_ns
        self.pending: int = pending


add_hints(
    Metadata,
    "jetstream.api.attributes",
    "METADATA",
    "sequence num_pending num_delivered timestamp",
)


def read_metadata(reply: bytes) -> Metadata:
    """Return the metadata in a reply subject; raise NotJetStreamMessage if there is none."""
    tokens = reply.split(b".")
    if tokens[:2] != [b"$JS", b"ACK"] or len(tokens) < 9 or len(tokens) == 10:  # META-1, META-2
        text = "reply %s is not an acknowledgment subject of JetStream"
        raise NotJetStreamMessage(text % shorten(reply))
    if len(tokens) == 9:
        domain = ""
        stream, consumer, *numbers = tokens[2:]
    else:
        domain = _text.decode(tokens[2])
        stream, consumer, *numbers = tokens[4:11]
    for token in numbers:
        if not is_number(token):
            text = "reply %s has %s where a number belongs"
            raise NotJetStreamMessage(text % (shorten(reply), shorten(token)))
    return Metadata(
        _text.decode(stream),
        _text.decode(consumer),
        "" if domain == "_" else domain,  # META-3
        *[int(token) for token in numbers],
    )


def read_place(reply: bytes) -> tuple[bytes, int, int] | None:
    """Return consumer, stream sequence and consumer sequence; None for any other subject."""
    tokens = reply.split(b".")
    count = len(tokens)
    if tokens[:2] != [b"$JS", b"ACK"] or count < 9 or count == 10:
        return None
    first = 3 if count == 9 else 5
    stream_seq, consumer_seq = tokens[first + 2], tokens[first + 3]
    if not is_number(stream_seq) or not is_number(consumer_seq):
        return None
    return tokens[first], int(stream_seq), int(consumer_seq)


def read_consumer_seq(reply: bytes) -> int | None:
    """Return the sequence of a delivery by its consumer; None for any other subject."""
    # Every message of a push subscription passes here. Only the end is split: 0.05 us less.
    dots = reply.count(b".")
    if dots == 8 or dots == 10:
        number = reply.rsplit(b".", 3)[1]  # PUSH-10
    elif dots > 10:
        number = reply.split(b".", 9)[8]
    else:
        return None
    if not reply.startswith(ACK_PREFIX):
        return None
    # Like `is_number`, but inlined.
    return int(number) if number.isdigit() and len(number) <= MOST_DIGITS else None


def is_number(token: bytes) -> bool:
    """Return whether a token is a number of at most 20 digits: `int` rejects very long ones."""
    return token.isdigit() and len(token) <= MOST_DIGITS
