"""The pull subscribe workflow of ADR-13: find or create a consumer, and fetch from it.

    stream      as given, or the one that takes the subject
    a name      durable, or name: look for that consumer
      found     check that it fits (binding.py)
      not found create it, unless `bind` is set; if another client was first, look again
    no name     create one, which is deleted by `unsubscribe`

A fetch is one pull with both no_wait and expires. The server then sends the messages that
are available; if there are none, it waits for the first. It expires shortly before the caller's
timeout. For one message a pull with expires alone does the same.
"""

from __future__ import annotations

from jetstream.api.assets import put_consumer
from jetstream.config import ConsumerConfig
from jetstream.errors import JetStreamNotAvailable
from jetstream.errors.api import ConsumerExists, ConsumerNotFound, JetStreamNotEnabled
from jetstream.machine.cleanup import clean_up, may_exist
from jetstream.pull.ledger import MARGIN
from jetstream.pull.options import check_count, check_time, fetch_template, first_template
from jetstream.streams.consumer import Consumer, bind_consumer
from natsproto.errors import (
    ConnectionClosed,
    InvalidState,
    InvalidValue,
    PermissionDenied,
    TimeoutExpired,
)
from natsproto.hinting import lazy_hints
from natsproto.session import check_flag
from natsproto.wire.subjects import check_known_name
from natsproto.wire.text import cut_middle

from .binding import bind
from .options import ConsumerOptions

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jetstream.api.client import ApiClient
    from jetstream.pull.messages import Batch
    from jetstream.schema.consumer_info import ConsumerInfo
    from jetstream.streams.consumer import BoundConsumer
    from jetstream.streams.manager import StreamManager
    from natsproto.durations import Seconds

# D-PSUB-3: fields that make a consumer a push consumer, or only apply to one.
_PUSH_ONLY = (
    "deliver_subject",
    "deliver_group",
    "flow_control",
    "idle_heartbeat",
    "rate_limit_bps",
)
# PSUB-11: the client may not look the consumer up, or cannot reach the API.
_LOOKUP_FAILED = (
    PermissionDenied,
    JetStreamNotEnabled,
    JetStreamNotAvailable,
    TimeoutExpired,
)
_SHORTEST = 0.001  # the shortest pull that is worth sending
_PAUSE = 0.05  # before the next pull, if one ends early and without a message


class PullSubscribeOptions(ConsumerOptions):
    """The options of a pull subscription.

    `name` is the consumer to look for, "" for a new one that belongs to the call.
    """

    CALL = "pull_subscribe"
    KIND, OTHER = "pull", "push"
    UNUSED: tuple[str, ...] = _PUSH_ONLY
    PLACE_RULE = "PSUB-1"
    UNUSED_RULE = "D-PSUB-3"
    FILTER_RULE = "PSUB-4"
    NAME_RULE = "PSUB-2"

    def __init__(
        self,
        subject: str,
        stream: str,
        durable: str,
        bind: bool,
        config: ConsumerConfig | Mapping[str, Any] | None,
        fields: Mapping[str, Any],
    ) -> None:
        super().__init__(subject, stream, config, fields)
        made = self.config
        self.bind: bool = check_flag("bind", bind)
        self._check()
        self.durable: str = self._one_of("durable", durable, "durable_name", made.durable_name)
        self.name: str = self.durable or made.name
        if bind and not self.name:
            raise InvalidValue("bind needs the name of a consumer: durable or name", "PSUB-2")
        found_filter = made.filter_subject
        self._set_filter()
        if bind:
            made.filter_subject = found_filter  # a filter that was not given is not compared
            check_known_name("consumer", self.name)
            self.given: list[str] = [name for name in self.given if name != "durable_name"]
        else:
            if durable:
                made.durable_name = durable
                self.given.append("durable_name")
            made.check()

    def fits(self, info: ConsumerInfo) -> None:
        """Raise BindRefused unless the existing consumer matches."""
        bind(info, subject=self.subject, config=self.config, given=self.given, pull=True)


async def pull_subscribe(
    streams: StreamManager, api: ApiClient, wanted: PullSubscribeOptions
) -> PullSubscription:
    """Find or create the consumer, and return the subscription."""
    streams = streams.bounded()
    stream = wanted.stream or await streams.stream_name_by_subject(wanted.subject)
    if wanted.name:
        try:
            return await _attach(streams, api, stream, wanted)
        except ConsumerNotFound:
            if wanted.bind:
                raise
        except _LOOKUP_FAILED:
            if not wanted.bind:
                raise
            # PSUB-11: the consumer may exist nevertheless; the first fetch shows it.
            return PullSubscription(
                streams.root, api, bind_consumer(api, stream, wanted.name, {}), deletes=False
            )
    config = wanted.config
    if not wanted.name:
        config.name = api.session.connection.new_token()
    try:
        made = await put_consumer(streams.calls, stream, "create", config.copy())
    except ConsumerExists:
        if not wanted.name:
            raise
        return await _attach(
            streams, api, stream, wanted
        )  # PSUB-2: another client created it after the lookup
    except BaseException as error:
        if not wanted.name and may_exist(error):
            clean_up(api, stream, config.name)  # D-JSSUB-17
        raise
    consumer = Consumer(api, stream, wanted.name or config.name, made)
    return PullSubscription(streams.root, api, consumer, deletes=not wanted.durable)


async def _attach(
    streams: StreamManager, api: ApiClient, stream: str, wanted: PullSubscribeOptions
) -> PullSubscription:
    found = await streams.consumer(stream, wanted.name)
    wanted.fits(found.cached_info)
    return PullSubscription(streams.root, api, found, deletes=False)


class PullSubscription:
    """A consumer to fetch from. Returned by JetStream.pull_subscribe; end it with `unsubscribe`."""

    def __init__(
        self, streams: StreamManager, api: ApiClient, consumer: BoundConsumer, deletes: bool
    ) -> None:
        self._streams = streams
        self._session = api.session
        self._deletes = deletes
        self._consumer = consumer
        self._puller = consumer.puller
        #: Whether it was unsubscribed.
        self.closed: bool = False

    @property
    def cached_info(self) -> ConsumerInfo | None:
        """The latest info of the consumer; None if the lookup failed."""
        return self._consumer.cached_info

    @property
    def stream(self) -> str:
        """The name of the stream."""
        return self._consumer.stream

    @property
    def name(self) -> str:
        """The name of the consumer."""
        return self._consumer.name

    async def info(self) -> ConsumerInfo:
        """Return the configuration and the state of the consumer; raise ConsumerNotFound."""
        return await self._consumer.info()

    async def fetch(self, batch: int = 1, timeout: Seconds = 5.0) -> Batch:
        """Fetch up to `batch` available messages; if there are none, wait for the first.

        It raises TimeoutExpired if none arrives within `timeout`, as other clients do;
        Consumer.fetch waits for a full batch, and returns an empty one instead. If the pull fails
        after messages arrived, the batch has them, and the `error`.
        """
        check_count("batch", batch)
        patience = check_time("timeout", timeout, _SHORTEST)
        if self.closed:
            raise InvalidState("the subscription has ended")
        session = self._session
        port = session.port
        end = port.now() + patience
        expire = end - min(patience / 10, 0.1)  # PSUB-6
        while True:
            now = port.now()
            if expire - now < _SHORTEST:
                raise TimeoutExpired("no message within %g s" % patience)
            found = await self._pull(batch, expire - now, end - now)
            if found is not None:
                return found
            # PSUB-7: it may have ended early, for example by a change of leader.
            await session.sleep(min(_PAUSE, end - port.now()))

    async def _pull(self, batch: int, expires: float, longest: float) -> Batch | None:
        """Pull once; return None if no message arrived and that is not an error."""
        puller = self._puller
        # PSUB-5
        several = batch > 1
        if several:
            template = first_template(puller.subject, expires, puller.pinned)
        else:
            template = fetch_template(puller.subject, expires, None, False, {}, puller.pinned)
        try:
            # D-PSUB-10
            found = await puller.pull(template, batch, 0, longest - MARGIN, eager=several)
        except TimeoutExpired:
            return None  # PSUB-8: the caller checks the time
        except ConnectionClosed:
            if self.closed:
                raise InvalidState("the subscription has ended during the fetch") from None
            raise
        if isinstance(found.error, TimeoutExpired):
            found.error = None
        return found if len(found) else None

    async def unsubscribe(self) -> None:
        """End the subscription, and delete the consumer if it belongs to it.

        A waiting fetch raises. Messages left over from a canceled fetch are nak'd.
        """
        if self.closed:
            return
        self.closed = True
        rest = self._puller.close()  # PSUB-9
        if self._session.connection.closed:
            return  # the server redelivers the rest, and deletes an unused consumer itself
        for msg in rest:
            await msg.nak()
        self._session.port.flush_soon()
        if self._deletes:
            try:
                await self._streams.delete_consumer(self.stream, self.name)
            except ConsumerNotFound:
                pass  # the server has deleted it

    async def __aenter__(self) -> PullSubscription:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.unsubscribe()

    if not TYPE_CHECKING:  # a type checker would accept every name
        __getattr__ = lazy_hints("jetstream.api.attributes", "PULL_SUBSCRIPTION")

    def __repr__(self) -> str:
        names = (cut_middle(self.name), cut_middle(self.stream))
        return "<PullSubscription of consumer %s of %s>" % names
