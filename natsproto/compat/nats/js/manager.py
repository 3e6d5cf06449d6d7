"""JetStreamManager: streams, consumers and stored messages."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from jetstream.api.client import read_reply
from natsproto.compat.nats import errors as base
from natsproto.compat.nats.aio.constants import NATS_HDR_LINE as NATS_HDR_LINE
from natsproto.compat.nats.aio.constants import NATS_HDR_LINE_SIZE as NATS_HDR_LINE_SIZE
from natsproto.compat.nats.aio.headers import read_headers
from natsproto.compat.nats.errors import NoRespondersError as NoRespondersError
from natsproto.errors import NatsError, NoResponders

from . import api
from .errors import APIError, NotFoundError, ServiceUnavailableError
from .errors import ConsumerInvalidResetError as ConsumerInvalidResetError
from .failures import translate

if TYPE_CHECKING:
    from natsproto.compat.nats.aio.client import Client
    from natsproto.wire.frames import Msg as RawMsg

_FORBIDDEN = set(">*. /\\\t\r\n")


def check_stream_name(name: str | None) -> str:
    """Return the name of a stream; raise ValueError if it is invalid."""
    if not name:
        raise ValueError("nats: stream name is required")
    if _FORBIDDEN & set(name):
        raise ValueError(f"nats: invalid stream name: {name!r}")
    return name


def check_consumer_name(name: str | None) -> str:
    """Return the name of a consumer; raise ValueError if it is invalid."""
    if not name:
        raise ValueError("nats: consumer name is required")
    if _FORBIDDEN & set(name):
        raise ValueError(f"nats: invalid consumer name: {name!r}")
    return name


class JetStreamManager:
    """The management of streams and consumers. `Client.jsm` returns it.

    prefix: the subject of the API, if it is not that of this account and domain
    timeout: how long to wait for a response, in seconds
    """

    def __init__(self, conn: Client, prefix: str = api.DEFAULT_PREFIX, timeout: float = 5) -> None:
        self._prefix = prefix
        self._nc = conn
        self._timeout = timeout

    # The account

    async def account_info(self) -> api.AccountInfo:
        """Return the use and the limits of this account."""
        return api.AccountInfo.from_response(await self._call("INFO"))

    # Streams

    async def find_stream_name_by_subject(self, subject: str) -> str:
        """Return the name of the stream that takes a subject; raise NotFoundError."""
        found = await self._call("STREAM.NAMES", {"subject": subject})
        if not found.get("streams"):
            raise NotFoundError
        name: str = found["streams"][0]
        return name

    async def stream_info(self, name: str, subjects_filter: str | None = None) -> api.StreamInfo:
        """Return the configuration and the state of a stream.

        subjects_filter: also count the messages of each of these subjects
        """
        check_stream_name(name)
        body = {"subjects_filter": subjects_filter} if subjects_filter else None
        return api.StreamInfo.from_response(await self._call(f"STREAM.INFO.{name}", body))

    async def add_stream(
        self, config: api.StreamConfig | None = None, **params: Any
    ) -> api.StreamInfo:
        """Create a stream; the keywords are fields of StreamConfig."""
        return await self._put_stream("CREATE", config, params)

    async def update_stream(
        self, config: api.StreamConfig | None = None, **params: Any
    ) -> api.StreamInfo:
        """Update a stream; the keywords are fields of StreamConfig."""
        return await self._put_stream("UPDATE", config, params)

    async def _put_stream(
        self, verb: str, config: api.StreamConfig | None, params: dict[str, Any]
    ) -> api.StreamInfo:
        config = (config or api.StreamConfig()).evolve(**params)
        name = check_stream_name(config.name)
        found = await self._call(f"STREAM.{verb}.{name}", config.as_dict())
        return api.StreamInfo.from_response(found)

    async def delete_stream(self, name: str) -> bool:
        """Delete a stream."""
        found = await self._call(f"STREAM.DELETE.{check_stream_name(name)}")
        return bool(found["success"])

    async def purge_stream(
        self,
        name: str,
        seq: int | None = None,
        subject: str | None = None,
        keep: int | None = None,
    ) -> bool:
        """Remove messages: all, those before `seq`, those of a subject, or all but `keep`."""
        check_stream_name(name)
        wanted = api.StreamPurgeRequest(seq=seq, filter=subject, keep=keep)
        found = await self._call(f"STREAM.PURGE.{name}", wanted.as_dict())
        return bool(found["success"])

    async def streams_info(self, offset: int = 0) -> list[api.StreamInfo]:
        """Return a page of up to 256 streams, beginning with that of this number."""
        return list(await self.streams_info_iterator(offset))

    async def streams_info_iterator(self, offset: int = 0) -> Iterable[api.StreamInfo]:
        """Return a page of streams, which are decoded one by one."""
        found = await self._call("STREAM.LIST", {"offset": offset})
        streams: list[dict[str, Any]] = found.get("streams") or []
        return api.StreamsListIterator(found["offset"], found["total"], streams)

    # Consumers

    async def consumer_info(
        self, stream: str, consumer: str, timeout: float | None = None
    ) -> api.ConsumerInfo:
        """Return the configuration and the state of a consumer."""
        check_stream_name(stream)
        check_consumer_name(consumer)
        found = await self._call(f"CONSUMER.INFO.{stream}.{consumer}", None, timeout)
        return api.ConsumerInfo.from_response(found)

    async def add_consumer(
        self,
        stream: str,
        config: api.ConsumerConfig | None = None,
        timeout: float | None = None,
        **params: Any,
    ) -> api.ConsumerInfo:
        """Create or update a consumer; the keywords are fields of ConsumerConfig."""
        config = (config or api.ConsumerConfig()).evolve(**params)
        return await self._put_consumer(stream, config, timeout)

    async def _put_consumer(
        self, stream: str, config: api.ConsumerConfig, timeout: float | None, action: str = ""
    ) -> api.ConsumerInfo:
        check_stream_name(stream)
        for name in (config.name, config.durable_name):
            if name is not None:
                check_consumer_name(name)
        endpoint = f"CONSUMER.CREATE.{stream}"
        name = config.name or config.durable_name
        if name:
            endpoint += "." + name
            if config.filter_subject and config.filter_subject != ">":
                endpoint += "." + config.filter_subject
        body: dict[str, Any] = {"stream_name": stream, "config": config.as_dict()}
        if action:
            body["action"] = action
        return api.ConsumerInfo.from_response(await self._call(endpoint, body, timeout))

    async def delete_consumer(self, stream: str, consumer: str) -> bool:
        """Delete a consumer."""
        check_stream_name(stream)
        check_consumer_name(consumer)
        found = await self._call(f"CONSUMER.DELETE.{stream}.{consumer}")
        return bool(found["success"])

    async def pause_consumer(
        self, stream: str, consumer: str, pause_until: str, timeout: float | None = None
    ) -> api.ConsumerPause:
        """Have a consumer deliver nothing until that time, as text in RFC 3339."""
        check_stream_name(stream)
        check_consumer_name(consumer)
        body = {"pause_until": pause_until}
        found = await self._call(f"CONSUMER.PAUSE.{stream}.{consumer}", body, timeout)
        return api.ConsumerPause.from_response(found)

    async def resume_consumer(
        self, stream: str, consumer: str, timeout: float | None = None
    ) -> api.ConsumerPause:
        """Have a consumer deliver again."""
        check_stream_name(stream)
        check_consumer_name(consumer)
        found = await self._call(f"CONSUMER.PAUSE.{stream}.{consumer}", None, timeout)
        return api.ConsumerPause.from_response(found)

    async def reset_consumer(
        self, stream: str, consumer: str, seq: int | None = None, timeout: float | None = None
    ) -> api.ConsumerReset:
        """Have a consumer begin again at this sequence; without one, after its last ack floor."""
        check_stream_name(stream)
        check_consumer_name(consumer)
        body = {"seq": seq} if seq else None
        found = await self._call(f"CONSUMER.RESET.{stream}.{consumer}", body, timeout)
        return api.ConsumerReset.from_response(found)

    async def consumers_info(
        self, stream: str, offset: int | None = None
    ) -> list[api.ConsumerInfo]:
        """Return a page of up to 256 consumers of a stream."""
        check_stream_name(stream)
        found = await self._call(f"CONSUMER.LIST.{stream}", {"offset": offset or 0})
        rows: list[dict[str, Any]] = found.get("consumers") or []
        return [api.ConsumerInfo.from_response(each) for each in rows]

    # Stored messages

    async def get_msg(
        self,
        stream_name: str,
        seq: int | None = None,
        subject: str | None = None,
        direct: bool | None = False,
        next: bool | None = False,
    ) -> api.RawStreamMsg:
        """Return a stored message: that of a sequence, or the last one of a subject.

        next: the first message of the subject from `seq` on
        direct: any replica may answer
        """
        check_stream_name(stream_name)
        wanted: dict[str, Any] = {}
        if next:
            wanted = {"seq": seq or 1, "next_by_subj": subject}
        elif seq is not None:
            wanted = {"seq": seq}
        elif subject:
            wanted = {"last_by_subj": subject}
        if direct:
            return await self._get_direct(stream_name, wanted)
        found = await self._call(f"STREAM.MSG.GET.{stream_name}", wanted)
        stored = dict(found["message"])
        stored["data"] = base64.b64decode(stored.get("data") or "")
        msg = api.RawStreamMsg.from_response(stored)
        if msg.hdrs:
            msg.headers = read_headers(base64.b64decode(msg.hdrs))
        return msg

    async def _get_direct(self, stream: str, wanted: dict[str, Any]) -> api.RawStreamMsg:
        endpoint, body = f"DIRECT.GET.{stream}", json.dumps(wanted).encode()
        if set(wanted) == {"last_by_subj"}:
            endpoint, body = f"{endpoint}.{wanted['last_by_subj']}", b""
        try:
            raw = await self._request(f"{self._prefix}.{endpoint}", body, None)
        except NatsError as error:
            raise translate(error) from error
        headers = read_headers(raw.raw_headers) or {}
        if raw.status == 404:
            raise NotFoundError(code=404, description=raw.description)
        if raw.status:
            raise APIError(code=raw.status, description=raw.description)
        return api.RawStreamMsg(
            subject=headers.get("Nats-Subject"),
            seq=int(headers["Nats-Sequence"]) if "Nats-Sequence" in headers else None,
            data=raw.data,
            headers=headers,
            stream=headers.get("Nats-Stream"),
            time=api.Base._parse_utc_iso(headers["Nats-Time-Stamp"]),
        )

    async def delete_msg(self, stream_name: str, seq: int) -> bool:
        """Delete a stored message."""
        check_stream_name(stream_name)
        found = await self._call(f"STREAM.MSG.DELETE.{stream_name}", {"seq": seq})
        return bool(found["success"])

    async def get_last_msg(
        self, stream_name: str, subject: str, direct: bool | None = False
    ) -> api.RawStreamMsg:
        """Return the last message of a subject."""
        return await self.get_msg(stream_name, subject=subject, direct=direct)

    # How calls are made

    async def _call(
        self, endpoint: str, body: dict[str, Any] | None = None, timeout: float | None = None
    ) -> dict[str, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        return await self._api_request(f"{self._prefix}.{endpoint}", data, timeout)

    async def _api_request(
        self, req_subject: str, req: bytes = b"", timeout: float | None = None
    ) -> dict[str, Any]:
        try:
            return read_reply((await self._request(req_subject, req, timeout)).data)
        except NoResponders as error:
            raise ServiceUnavailableError from error
        except NatsError as error:
            raise translate(error) from error

    async def _request(self, subject: str, body: bytes, timeout: float | None) -> RawMsg:
        nc = self._nc
        nc._check_open()
        session = nc._session
        deadline = session.port.now() + (self._timeout if timeout is None else timeout)
        request = session.connection.start_request(subject, body, deadline=deadline, wildcards=True)
        reply = await session.settle(request)
        if reply is None:
            raise base.ConnectionClosedError
        return reply
