"""Calls of the API that create, update and look up streams and consumers."""

from __future__ import annotations

from jetstream.errors import FilterIgnored
from jetstream.schema.consumer_info import ConsumerInfo
from jetstream.schema.stream_info import StreamInfo
from natsproto.errors import InvalidValue, NatsError
from natsproto.session import check_flag
from natsproto.wire.subjects import check_known_name

from .changes import differences, merge

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jetstream.errors.api import ConfigExists
    from jetstream.schema.consumer_config import ConsumerConfig
    from jetstream.schema.fields import Fields
    from jetstream.schema.stream_config import StreamConfig

    from .client import ApiClient


async def put_stream(
    api: ApiClient, verb: str, config: StreamConfig, pedantic: bool = False
) -> StreamInfo:
    """Create or update a stream with this complete configuration."""
    config.check(new=verb == "CREATE")  # CALL-11
    api.check_since(config)
    body = _with_pedantic(api, _config_json(config), pedantic)
    return StreamInfo.from_json(await api.call("STREAM.%s.%s" % (verb, config.name), body))


async def put_consumer(
    api: ApiClient, stream: str, action: str, config: ConsumerConfig, pedantic: bool = False
) -> ConsumerInfo:
    """Create or update a consumer with this complete configuration; without an action, do either.

    A consumer without a name gets one, in its configuration.
    """
    check_known_name("stream", stream)
    config.check(new=action != "update")
    api.check_since(config)
    name = config.name or config.durable_name
    if not name:
        if action == "update":
            raise _nameless()
        name = config.name = api.session.connection.new_token()
    endpoint = "CONSUMER.CREATE.%s.%s" % (stream, name)
    if config.filter_subject:
        # CALL-8: permissions may be granted by filter.
        endpoint = "%s.%s" % (endpoint, config.filter_subject)
    body = {"stream_name": stream, "config": _config_json(config), "action": action}
    info = ConsumerInfo.from_json(await api.call(endpoint, _with_pedantic(api, body, pedantic)))
    if config.filter_subjects and not info.config.filter_subjects:
        raise FilterIgnored("the server ignored filter_subjects: it is older than 2.10")  # CALL-12
    return info


async def change_stream(
    api: ApiClient, wanted: StreamConfig, fields: Mapping[str, Any]
) -> StreamConfig:
    """Return the configuration of a stream with these fields changed; raise StreamNotFound.

    D-CALL-16: the other fields keep their values.
    """
    api.check_since(wanted)
    return merge((await stream_info(api, wanted.name)).config, fields)


async def change_consumer(
    api: ApiClient, stream: str, wanted: ConsumerConfig, fields: Mapping[str, Any]
) -> ConsumerConfig:
    """Return the configuration of a consumer with these fields changed; raise ConsumerNotFound."""
    api.check_since(wanted)
    name = wanted.name or wanted.durable_name
    if not name:
        raise _nameless()
    return merge((await consumer_info(api, stream, name)).config, fields)


async def explain(
    error: ConfigExists, api: ApiClient, wanted: Fields, stream: str, name: str
) -> None:
    """Add the fields that differ to the error (D-CALL-17); leave it unchanged if that fails.

    The error is about the consumer of this name, or about the stream if `name` is empty.
    """
    try:
        if name:
            found: Fields = (await consumer_info(api, stream, name)).config
        else:
            found = (await stream_info(api, stream)).config
    except NatsError:
        return
    error.different = differences(wanted, found)


async def stream_info(api: ApiClient, name: str) -> StreamInfo:
    """Return the info of a stream; raise StreamNotFound."""
    endpoint = "STREAM.INFO.%s" % check_known_name("stream", name)
    return StreamInfo.from_json(await api.call(endpoint))


async def consumer_info(api: ApiClient, stream: str, name: str) -> ConsumerInfo:
    """Return the info of a consumer; raise ConsumerNotFound."""
    check_known_name("stream", stream)
    endpoint = "CONSUMER.INFO.%s.%s" % (stream, check_known_name("consumer", name))
    return ConsumerInfo.from_json(await api.call(endpoint))


def _config_json(config: Fields) -> dict[str, Any]:
    """Return the configuration as the server reads it, without empty lists.

    CALL-22: the server keeps an empty list, which differs from none when the same configuration is
    created again.
    """
    json: dict[str, Any] = _without_empty_lists(config.to_json())
    return json


def _without_empty_lists(value: Any) -> Any:
    parts: Any = value
    if isinstance(value, list):
        return [_without_empty_lists(each) for each in parts]
    if isinstance(value, dict):
        return {name: _without_empty_lists(parts[name]) for name in parts if parts[name] != []}
    return value


def _with_pedantic(api: ApiClient, body: dict[str, Any], pedantic: bool) -> dict[str, Any]:
    if check_flag("pedantic", pedantic):
        api.require_level(1, "pedantic=True")  # CALL-18: an older server would ignore it
        body["pedantic"] = True
    return body


def _nameless() -> InvalidValue:
    return InvalidValue("the consumer to update has neither a name nor a durable_name", "CALL-9")
