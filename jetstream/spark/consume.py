"""ConsumeReader: mode=consume, a durable pull consumer that others may share. At least once.

The driver fetches, and partitions carry the messages to their tasks: so a task that is tried again
has the same rows, and what is acknowledged is what was in the batch. That is done when Spark tells
that the batch is finished: by `commit`, or by asking what follows it. Messages of a batch that was
never finished, because the driver died, are delivered again after the consumer's ack_wait; then
they are in another batch, or once more in the same one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from jetstream.metadata import read_metadata
from natsproto.errors import InvalidValue
from natsproto.frames import Msg

from .arrow import Rows, arrow_schema, pulled_rows, record_batch
from .compat import SupportsTriggerAvailableNow
from .connect import client, jetstream
from .limits import is_unlimited
from .schema import check_schema
from .source import default_parallelism

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from jetstream.blocking import Consumer, JsMsg

    from .options import Settings

# What a batch has at most if the user says nothing: it goes through the driver.
_MOST = 10_000
# Fewer are not worth a task of their own.
_LEAST = 1000
_POLL = 1.0


class Taken(InputPartition):
    """Messages that were fetched: subject, reply, data and headers of each."""

    def __init__(self, messages: list[tuple[bytes, bytes, bytes, bytes | None]]) -> None:
        super().__init__(None)
        self.messages = messages

    def __repr__(self) -> str:
        return "Taken(%d messages)" % len(self.messages)


class ConsumeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the number of a batch; which messages it has is known to this process alone."""

    def __init__(self, settings: Settings, schema: StructType) -> None:
        self.settings = settings
        self.schema = schema
        self.columns = check_schema(schema, consume=True)
        self.stream = settings.list("stream")[0]
        self.name = settings.text("consumer")
        self._most = settings.number("maxMessagesPerTrigger") or _MOST
        self._batches: dict[int, list[JsMsg]] = {}
        self._kept: Consumer | None = None
        self._left: int | None = None  # of AvailableNow
        # Before 4.2 Spark does not say where a batch starts; numbers need only grow.
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
            messages = self._take(is_unlimited(limit) and start is not None)
            if not messages:
                return self._offset(number)
            self._batches[number + 1] = messages
        self._number = number + 1
        return self._offset(number + 1)

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadMaxRows

        return ReadMaxRows(self._most)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return None  # a number of batches tells nothing about lag

    def prepareForTriggerAvailableNow(self) -> None:
        self._left = self._consumer().cached_info.num_pending

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        number = self._read(end)
        if number == self._read(start):
            return []
        if number not in self._batches:
            # Of a driver that died: what it had taken comes again, now or later.
            self._batches[number] = self._take(False, wait=False)
        messages = [
            (msg.raw_subject, msg.raw_reply, msg.data, msg.raw_headers)
            for msg in self._batches[number]
        ]
        size = max(_LEAST, -(-len(messages) // default_parallelism()))
        return [Taken(messages[i : i + size]) for i in range(0, len(messages), size)]

    def commit(self, end: dict[str, Any]) -> None:
        self._finish(self._read(end))

    def stop(self) -> None:
        pass  # the process ends, and its connection with it

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, Taken) and partition.messages:
            yield record_batch(self._rows(partition), arrow_schema(self.schema))

    def _rows(self, partition: Taken) -> Rows:
        messages = [
            Msg(subject, 0, reply, data, headers)
            for subject, reply, data, headers in partition.messages
        ]
        rows = pulled_rows(self.stream, messages)
        if {"num_delivered", "num_pending"} & set(self.columns):
            places = [read_metadata(msg.raw_reply) for msg in messages]
            rows.more["num_delivered"] = [place.delivered for place in places]
            rows.more["num_pending"] = [place.pending for place in places]
        rows.more["consumer"] = [self.name] * len(messages)
        return rows

    def _offset(self, number: int) -> dict[str, Any]:
        return {"consumer": "%s/%s" % (self.stream, self.name), "batch": number}

    def _read(self, offset: dict[str, Any]) -> int:
        number = offset.get("batch")
        if not isinstance(number, int) or offset != self._offset(number):
            text = "offset %r is not of consumer %s of stream %s"
            raise InvalidValue(text % (offset, self.name, self.stream))
        return number

    def _consumer(self) -> Consumer:
        consumer = jetstream(self.settings).consumer(self.stream, self.name)
        config = consumer.cached_info.config
        if config.deliver_subject:
            raise InvalidValue("mode=consume: consumer %s is not a pull consumer" % self.name)
        if config.ack_policy == "none":
            text = "mode=consume: consumer %s has ack_policy none, so what fails would be lost"
            raise InvalidValue(text % self.name)
        return consumer

    def _take(self, everything: bool, wait: bool = True) -> list[JsMsg]:
        """What there is, within limits; if there is nothing, wait a little for something."""
        if self._left == 0:
            return []
        if self._kept is None:
            self._kept = self._consumer()
        consumer = self._kept
        most = self._most if self._left is None else min(self._most, self._left)
        taken: list[JsMsg] = []
        if wait and self._left is None:
            first = consumer.next(expires=_POLL)
            if first is None:
                return []
            taken.append(first)
        while everything or len(taken) < most:
            count = self._most if everything else most - len(taken)
            found = list(consumer.fetch(count, no_wait=True))
            taken += found
            if not found:
                break
        if self._left is not None:
            self._left = max(0, self._left - len(taken)) if taken else 0
        return taken

    def _finish(self, number: int) -> None:
        """All batches up to this one are done with: acknowledge them."""
        for each in [each for each in self._batches if each <= number]:
            with client(self.settings).corked():
                for msg in self._batches[each]:
                    msg.ack()
            client(self.settings).flush()
            del self._batches[each]
