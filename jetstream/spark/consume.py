"""ConsumeReader: mode=consume, with a durable pull consumer that others may share; at least once.

The driver fetches the messages, and partitions carry them to their tasks. So a retried task has the
same rows, and exactly the messages of a batch are acknowledged. That happens when Spark reports
that the batch is finished: by `commit`, or by a request for the next offset. If the driver dies
before that, the messages are redelivered after the consumer's ack_wait, in another batch or in the
same one.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from jetstream.api.metadata import read_metadata
from jetstream.errors import ConsumerNotFound, ConsumerUnavailable, HeartbeatMissed
from natsproto.errors import InvalidValue
from natsproto.wire.frames import Msg
from natsproto.wire.text import shorten

from .arrow import Rows, arrow_schema, pulled_rows, record_batch
from .compat import SupportsTriggerAvailableNow
from .connect import client, jetstream
from .limits import is_unlimited
from .offsets import VERSION, check_version
from .plan import default_parallelism
from .pull import BUDGET, Pulls
from .queries import StreamQueries
from .retry import RETRYABLE_CALLS, Backoff, retry
from .schema import check_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from jetstream.blocking import Consumer

    from .options import Settings

# The default limits of a batch, which has to pass through the driver.
_MOST = 10_000
_MOST_BYTES = 64 * 1024 * 1024
# Fewer are not worth a task of their own.
_LEAST = 1000
# How long to wait for a first message, and for messages that other clients may have taken.
_POLL = 1.0
_BRIEFLY = 0.1


class FetchedPartition(InputPartition):
    """Fetched messages: subject, reply, data and headers of each."""

    def __init__(self, messages: list[tuple[bytes, bytes, bytes, bytes | None]]) -> None:
        super().__init__(None)
        self.messages = messages

    def __repr__(self) -> str:
        return "FetchedPartition(%d messages)" % len(self.messages)


class ConsumeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the number of a batch; only this process knows the messages of a batch."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.settings = settings
        self.schema = schema
        self.columns: list[str] = check_schema(schema, consume=True)
        self.stream: str = settings.list("stream")[0]
        self.name: str = settings.text("consumer")
        self._most = settings.number("maxMessagesPerTrigger") or _MOST
        self._most_bytes = settings.number("maxBytesPerTrigger") or _MOST_BYTES
        self._batches: dict[int, list[Msg]] = {}
        self._pulls: Pulls | None = None
        self._left: int | None = None  # of AvailableNow
        # Before 4.2 Spark does not pass the start of a batch; the numbers need only grow.
        self._number = int(time.time() * 1000)

    def initialOffset(self) -> dict[str, Any]:
        return self._offset(0)

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        number = self._number if start is None else self._read(start)
        if start is not None:
            self._finish(number)
        if number + 1 not in self._batches:
            wait = _POLL if self._left is None else _BRIEFLY
            messages = self._take(wait, is_unlimited(limit) and start is not None)
            if not messages:
                return self._offset(number) if start is None else start
            self._batches[number + 1] = messages
        self._number = number + 1
        return self._offset(number + 1)

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadMaxRows

        return ReadMaxRows(self._most)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None  # the number of a batch does not measure the lag

    def prepareForTriggerAvailableNow(self) -> None:
        info = retry(self._consumer).cached_info
        # Including unacknowledged messages, which may be redelivered.
        self._left = info.num_pending + info.num_ack_pending

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        number = self._read(end)
        if number == self._read(start):
            return []
        if number not in self._batches:
            # The batch of a driver that died: its messages are redelivered, now or later.
            self._batches[number] = self._take(_BRIEFLY, False)
        messages = [
            (msg.raw_subject, msg.raw_reply, msg.data, msg.raw_headers)
            for msg in self._batches[number]
        ]
        size = max(_LEAST, -(-len(messages) // default_parallelism()))
        return [FetchedPartition(messages[i : i + size]) for i in range(0, len(messages), size)]

    def commit(self, end: dict[str, Any]) -> None:
        self._finish(self._read(end))

    def stop(self) -> None:
        pass  # the process ends, and its connection with it

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, FetchedPartition) and partition.messages:
            wanted = arrow_schema(self.schema)
            messages = [
                Msg(subject, 0, reply, data, headers)
                for subject, reply, data, headers in partition.messages
            ]
            size = self.settings.number("arrowBatchRows")
            for i in range(0, len(messages), size):
                yield record_batch(self._rows(messages[i : i + size]), wanted)

    def _rows(self, messages: list[Msg]) -> Rows:
        rows = pulled_rows(self.stream, messages)
        if {"num_delivered", "num_pending"} & set(self.columns):
            places = [read_metadata(msg.raw_reply) for msg in messages]
            rows.more["num_delivered"] = [place.delivered for place in places]
            rows.more["num_pending"] = [place.pending for place in places]
        rows.more["consumer"] = [self.name] * len(messages)
        return rows

    def _offset(self, number: int) -> dict[str, Any]:
        return {"v": VERSION, "consumer": "%s/%s" % (self.stream, self.name), "batch": number}

    def _read(self, offset: dict[str, Any]) -> int:
        check_version(offset, VERSION)
        try:
            number: Any = offset["batch"]
        except (KeyError, TypeError):
            number = None
        if type(number) is not int or {**offset, "v": VERSION} != self._offset(number):
            text = (
                "offset %s in the checkpoint does not belong to consumer %s of stream %s: use"
                " another checkpoint"
            )
            raise InvalidValue(text % (shorten(offset), self.name, self.stream))
        return number

    def _consumer(self) -> Consumer:
        try:
            consumer = jetstream(self.settings).consumer(self.stream, self.name)
        except ConsumerNotFound as error:
            text = "%s: %s of stream %s" % (error.description, self.name, self.stream)
            raise ConsumerNotFound(error.code, error.err_code, text) from None
        config = consumer.cached_info.config
        if config.deliver_subject:
            raise InvalidValue("mode=consume: consumer %s is not a pull consumer" % self.name)
        if config.ack_policy == "none":
            text = "mode=consume: consumer %s has ack_policy none, so failed batches would be lost"
            raise InvalidValue(text % self.name)
        return consumer

    def _begin(self) -> Pulls:
        consumer = self._consumer()
        allowed = consumer.cached_info.config.max_ack_pending or 0
        if allowed > 0:
            # No more are delivered until some are acknowledged, which happens once per batch.
            self._most = min(self._most, allowed)
        api = StreamQueries(self.settings, self.stream).api()
        return Pulls(client(self.settings), api, consumer)

    def _take(self, wait: float, everything: bool) -> list[Msg]:
        """Return the available messages, within the limits; wait briefly if there are none."""
        backoff = Backoff()
        while self._left != 0:
            try:
                taken = self._take_now(wait, everything)
            except (ConsumerUnavailable, HeartbeatMissed, *RETRYABLE_CALLS) as caught:
                error = caught
            else:
                if self._left is not None:
                    self._left = max(0, self._left - len(taken)) if taken else 0
                return taken
            if self._pulls is not None:
                self._pulls.close()
                self._pulls = None
            backoff.failed(error)
        return []

    def _take_now(self, wait: float, everything: bool) -> list[Msg]:
        pulls = self._pulls = self._pulls or self._begin()
        most = self._most if self._left is None else min(self._most, self._left)
        taken: list[Msg] = []
        size = 0
        while everything or (len(taken) < most and size < self._most_bytes):
            count = self._most if everything else most - len(taken)
            room = BUDGET if everything else self._most_bytes - size
            pulls.request(min(count, self.settings.number("fetchSize")), wait, room)
            found, failure = pulls.take(large=not taken)
            taken += found
            size += sum([len(msg.data) + len(msg.raw_headers or b"") for msg in found])
            if failure is not None and not taken:
                raise failure
            if failure is not None or not found or not read_metadata(found[-1].raw_reply).pending:
                break
            wait = _BRIEFLY
        return taken

    def _finish(self, number: int) -> None:
        """Acknowledge all batches up to this one."""
        for each in [each for each in self._batches if each <= number]:
            retry(partial(self._acknowledge, self._batches[each]))
            del self._batches[each]

    def _acknowledge(self, messages: list[Msg]) -> None:
        connection = client(self.settings)
        with connection.corked():
            for msg in messages:
                connection.publish(msg.reply, b"+ACK")
        connection.flush()
