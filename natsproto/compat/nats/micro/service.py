"""Service: endpoints that answer requests, and describe themselves (ADR-32)."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from typing import TYPE_CHECKING, Any

from natsproto.compat.nats import errors
from natsproto.compat.nats.aio.client import Client as Client
from natsproto.compat.nats.aio.msg import Msg as Msg
from natsproto.compat.nats.aio.subscription import Subscription as Subscription

from .info import INFO_RESPONSE_TYPE as INFO_RESPONSE_TYPE
from .info import PING_RESPONSE_TYPE as PING_RESPONSE_TYPE
from .info import STATS_RESPONSE_TYPE as STATS_RESPONSE_TYPE
from .info import EndpointInfo, EndpointStats, ServiceInfo, ServicePing, ServiceStats
from .protocols import EndpointManager as EndpointManager
from .protocols import GroupManager as GroupManager
from .protocols import ServiceIdentity as ServiceIdentity
from .request import Handler, Request, ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable

DEFAULT_QUEUE_GROUP = "q"
DEFAULT_PREFIX = "$SRV"
SEMVER_REGEX = re.compile(
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
    r"(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$"
)
NAME_REGEX = re.compile(r"^[A-Za-z0-9\-_]+$")
SUBJECT_REGEX = re.compile(r"^[^ >]*[>]?$")
#: Returns the `data` of an endpoint's statistics.
StatsHandler = Callable[[EndpointStats], Any]


class ServiceVerb(str, Enum):
    """The three requests that every service answers."""

    PING = "PING"
    STATS = "STATS"
    INFO = "INFO"


def _check_name(name: str) -> None:
    if not name:
        raise ValueError("Name cannot be empty.")
    if NAME_REGEX.match(name) is None:
        raise ValueError(
            "Invalid name. It must contain only alphanumeric characters, dashes, and underscores."
        )


def _check_queue_group(name: str | None) -> None:
    if name and SUBJECT_REGEX.match(name) is None:
        raise ValueError("Invalid queue group. Queue group must not contain spaces.")


def _now() -> datetime:
    """Return the time in UTC without a zone, as nats-py has it."""
    return datetime.now(timezone.utc).replace(tzinfo=None)


@dataclass
class EndpointConfig:
    """The configuration of an endpoint; without a `subject` its name is the subject."""

    name: str
    handler: Handler
    queue_group: str | None = None
    subject: str | None = None
    metadata: dict[str, str] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if the name, the subject or the queue group is invalid."""
        _check_name(self.name)
        _check_queue_group(self.queue_group)
        if self.subject and SUBJECT_REGEX.match(self.subject) is None:
            raise ValueError(
                "Invalid subject. Subject must not contain spaces, "
                "and can only have '>' at the end."
            )


@dataclass
class GroupConfig:
    """The configuration of a group: a prefix of subjects, and a queue group."""

    name: str
    queue_group: str | None = None


@dataclass
class ServiceConfig:
    """The configuration of a service.

    stats_handler: returns the `data` of an endpoint's statistics
    """

    name: str
    version: str
    description: str | None = None
    metadata: dict[str, str] | None = None
    queue_group: str | None = None
    stats_handler: StatsHandler | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if the name, the version or the queue group is invalid."""
        _check_name(self.name)
        _check_queue_group(self.queue_group)
        if not self.version:
            raise ValueError("Version cannot be empty.")
        if SEMVER_REGEX.match(self.version) is None:
            raise ValueError(
                "Invalid version. It must follow semantic versioning (e.g., 1.0.0, 2.1.3-alpha.1)."
            )


class Endpoint:
    """An endpoint: a handler that answers the requests of a subject, one after the other."""

    def __init__(self, service: Service, config: EndpointConfig) -> None:
        self._service = service
        self._config = config
        self._name = config.name
        self._subject = config.subject or config.name
        self._queue_group = config.queue_group or DEFAULT_QUEUE_GROUP
        self._metadata = config.metadata
        self._sub: Subscription | None = None  # None until it is started
        self._reset()

    async def _start(self) -> None:
        self._sub = await self._service._client.subscribe(
            self._subject, self._queue_group, self._handle_request
        )

    def _reset(self) -> None:
        self._num_requests = 0
        self._num_errors = 0
        self._processing_time = 0
        self._last_error: str | None = None

    def _stats(self) -> EndpointStats:
        average = self._processing_time // self._num_requests if self._num_requests else 0
        stats = EndpointStats(
            self._name,
            self._subject,
            self._queue_group,
            self._num_requests,
            self._num_errors,
            self._processing_time,
            average,
            self._last_error,
        )
        handler = self._service._config.stats_handler
        return stats if handler is None else replace(stats, data=handler(stats))

    async def _handle_request(self, msg: Msg) -> None:
        started = time.perf_counter_ns()
        self._num_requests += 1
        request = Request(msg)
        try:
            await self._config.handler(request)
        except Exception as error:
            self._num_errors += 1
            self._last_error = repr(error)
            code, text = "500", repr(error)
            if isinstance(error, ServiceError):
                code, text = error.code, error.description
            if msg.reply:
                await request.respond_error(code, text)
        finally:
            self._processing_time += time.perf_counter_ns() - started


class Group:
    """Endpoints with a common prefix of their subjects."""

    def __init__(self, service: Service, config: GroupConfig) -> None:
        self._service = service
        self._prefix = config.name
        self._queue_group = config.queue_group

    async def add_endpoint(self, config: EndpointConfig | None = None, **kwargs: Any) -> None:
        """Add an endpoint; the keywords are fields of EndpointConfig."""
        config = replace(config, **kwargs) if config else EndpointConfig(**kwargs)
        subject = _join(self._prefix, config.subject or config.name)
        queue_group = config.queue_group or self._queue_group
        await self._service.add_endpoint(replace(config, subject=subject, queue_group=queue_group))

    def add_group(self, config: GroupConfig | None = None, **kwargs: Any) -> Group:
        """Return a group within this one; the keywords are fields of GroupConfig."""
        config = replace(config, **kwargs) if config else GroupConfig(**kwargs)
        return Group(
            self._service,
            GroupConfig(_join(self._prefix, config.name), config.queue_group or self._queue_group),
        )


class Service(AbstractAsyncContextManager["Service"]):
    """A service. `stop` answers the requests that have arrived, and so does the end of a block."""

    def __init__(self, client: Client, config: ServiceConfig) -> None:
        self._client = client
        self._config = config
        self._id = client._nuid.next().decode()
        self._endpoints: list[Endpoint] = []
        self._verbs: list[Subscription] = []
        self._started: datetime = _now()
        self._stopped = asyncio.Event()
        self._prefix = DEFAULT_PREFIX

    @property
    def id(self) -> str:
        """The id of this instance."""
        return self._id

    @property
    def stopped(self) -> asyncio.Event:
        """Set when the service has stopped."""
        return self._stopped

    async def start(self) -> None:
        """Start to answer PING, INFO and STATS, unless `add_service` has done it."""
        if self._verbs:
            return
        answers: dict[ServiceVerb, Callable[[Msg], Awaitable[None]]] = {
            ServiceVerb.PING: self._handle_ping_request,
            ServiceVerb.INFO: self._handle_info_request,
            ServiceVerb.STATS: self._handle_stats_request,
        }
        name = self._config.name
        for verb, answer in answers.items():
            for only, id in ((None, None), (name, None), (name, self._id)):
                subject = control_subject(verb, only, id, self._prefix)
                self._verbs.append(await self._client.subscribe(subject, cb=answer))
        self._started = _now()
        await self._client.flush()

    async def add_endpoint(self, config: EndpointConfig | None = None, **kwargs: Any) -> None:
        """Add an endpoint; the keywords are fields of EndpointConfig."""
        config = replace(config, **kwargs) if config else EndpointConfig(**kwargs)
        queue_group = config.queue_group or self._config.queue_group
        endpoint = Endpoint(self, replace(config, queue_group=queue_group))
        await endpoint._start()
        self._endpoints.append(endpoint)

    def add_group(self, config: GroupConfig | None = None, **kwargs: Any) -> Group:
        """Return a group of endpoints; the keywords are fields of GroupConfig."""
        config = replace(config, **kwargs) if config else GroupConfig(**kwargs)
        group = config.queue_group or self._config.queue_group
        return Group(self, replace(config, queue_group=group))

    def stats(self) -> ServiceStats:
        """Return the statistics of the endpoints."""
        return ServiceStats(
            self._id,
            self._config.name,
            self._config.version,
            self._started,
            [endpoint._stats() for endpoint in self._endpoints],
            self._config.metadata or {},
        )

    def info(self) -> ServiceInfo:
        """Return the description of the service and its endpoints."""
        endpoints = [
            EndpointInfo(each._name, each._subject, each._queue_group, each._metadata or {})
            for each in self._endpoints
        ]
        config = self._config
        metadata = config.metadata or {}
        return ServiceInfo(
            config.name, self._id, config.version, config.description, endpoints, metadata
        )

    async def reset(self) -> None:
        """Set all counters to 0."""
        for endpoint in self._endpoints:
            endpoint._reset()
        self._started = _now()

    async def stop(self) -> None:
        """Answer the requests that have arrived, and stop. Further calls do nothing.

        A handler may call it. If handlers take longer than `drain_timeout`, DrainTimeoutError goes
        to `error_cb`.
        """
        if self._stopped.is_set():
            return
        caller = asyncio.current_task()
        endpoints = [each._sub for each in self._endpoints if each._sub is not None]
        for subs in (endpoints, self._verbs):
            drains = asyncio.gather(*[_drain(sub, caller) for sub in subs])
            try:
                await asyncio.wait_for(drains, self._client.options["drain_timeout"])
            except asyncio.TimeoutError:
                await self._client._report(errors.DrainTimeoutError())
        self._stopped.set()

    async def __aenter__(self) -> Service:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def _handle_ping_request(self, msg: Msg) -> None:
        config = self._config
        ping = ServicePing(self._id, config.name, config.version, config.metadata or {})
        await msg.respond(json.dumps(ping.to_dict()).encode())

    async def _handle_info_request(self, msg: Msg) -> None:
        await msg.respond(json.dumps(self.info().to_dict()).encode())

    async def _handle_stats_request(self, msg: Msg) -> None:
        await msg.respond(json.dumps(self.stats().to_dict()).encode())


def control_subject(
    verb: ServiceVerb, name: str | None = None, id: str | None = None, prefix: str = DEFAULT_PREFIX
) -> str:
    """Return the subject of a request to all services, to those of a name, or to one instance."""
    verb = ServiceVerb(verb)
    if id and not name:
        raise ValueError("name is required when id is provided")
    return ".".join([part for part in (prefix, verb.value, name, id) if part])


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name


async def _drain(sub: Subscription, caller: asyncio.Task[Any] | None) -> None:
    if not (sub._closed or sub._conn.is_closed or sub._conn.is_draining):
        with suppress(errors.ConnectionClosedError):
            await sub._drain(caller)
