"""What the key-value store and the object store share: a bucket is a stream with a prefix."""

from __future__ import annotations

from jetstream.api.stored import get_by_api, get_direct, get_direct_last
from jetstream.errors.api import StreamNotFound
from jetstream.errors.kv import BucketNotFound
from natsproto.errors import InvalidName, InvalidValue, NotSupported, RemoteError
from natsproto.wire.subjects import LETTERS_AND_DIGITS
from natsproto.wire.text import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    from jetstream.api.client import ApiClient
    from jetstream.api.stored import StoredMsg
    from jetstream.config import StreamConfig
    from jetstream.schema.info import StreamInfo
    from jetstream.stream import Stream

    Same: TypeAlias = tuple[tuple[str, str], ...]

    class BucketConfig(Protocol):
        """The configuration of a bucket of either kind."""

        bucket: str
        compression: bool


# What a bucket and its stream have in common: its name in the one, and in the other.
SAME = (
    ("description", "description"),
    ("ttl", "max_age"),
    ("max_bytes", "max_bytes"),
    ("storage", "storage"),
    ("replicas", "num_replicas"),
    ("placement", "placement"),
    ("metadata", "metadata"),
)
# What a bucket may have changed about its stream; the rest stays as it is.
GOVERNED = tuple([theirs for _, theirs in SAME]) + ("compression",)
_COMPRESSED = "s2"
ROLLUP = "Nats-Rollup"


def check_chars(what: str, name: str, allowed: str, told: str, rule: str) -> str:
    """InvalidName, with the rule, unless it has such characters alone, which are `told` as this."""
    if not isinstance(name, str):
        raise InvalidName("%s %s is not a str" % (what, shorten(name)), rule)
    if not name:
        raise InvalidName("%s is empty" % what, rule)
    for char in name:
        if char not in allowed:
            text = "%s %s contains %r: there are %s only"
            raise InvalidName(text % (what, shorten(name), char, told), rule)
    return name


def check_bucket_name(bucket: str, rule: str) -> str:
    """InvalidName unless a bucket can be called that."""
    allowed = LETTERS_AND_DIGITS + "-_"
    return check_chars("bucket", bucket, allowed, "letters, digits, - and _", rule)


def check_given(kind: type, given: object, rule: str) -> None:
    """InvalidValue unless it is a configuration of this kind, or None."""
    if given is not None and not isinstance(given, kind):
        text = "%s is not of type %s" % (shorten(given), kind.__name__)
        if isinstance(given, str):
            text += "; a name is a keyword: bucket=%s" % shorten(given)
        raise InvalidValue(text, rule)


def write_stream(config: BucketConfig, stream: StreamConfig, same: Same = SAME) -> None:
    """Into the stream what is the same there; defaults are left to the server."""
    for name, theirs in same:
        value = getattr(config, name)
        if value:
            setattr(stream, theirs, value)
    if config.compression:
        stream.compression = _COMPRESSED


def read_stream(config: BucketConfig, stream: StreamConfig, prefix: str, same: Same = SAME) -> None:
    """The same the other way round; the stream is called by the prefix and the bucket's name."""
    config.bucket = stream.name[len(prefix) :]
    for name, theirs in same:
        setattr(config, name, getattr(stream, theirs))
    config.compression = stream.compression == _COMPRESSED


async def read_message(
    api: ApiClient, stream: str, subject: str, *, seq: int | None = None, direct: bool
) -> StoredMsg:
    """The last message of the subject, or the one of this sequence; MessageNotFound.

    `direct`: by whoever has it, where the stream allows that; else by the leader.
    """
    body: dict[str, Any] = {"last_by_subj": subject} if seq is None else {"seq": seq}
    if direct:
        try:
            if seq is None:
                return await get_direct_last(api, stream, subject)
            return await get_direct(api, stream, body)
        except NotSupported:
            pass  # KV-26, OBJ-15: it was changed, or is gone: the API knows
    return await get_by_api(api, stream, body)


async def check_there(stream: Stream, bucket: str) -> None:
    """BucketNotFound if the bucket is gone, so that nobody takes what is published (KV-48)."""
    try:
        await stream.info()
    except StreamNotFound:
        raise BucketNotFound(bucket) from None
    except RemoteError:
        pass  # JetStream is down, for one


class BucketStatus:
    """How a bucket is configured, and what it holds, as far as all kinds of buckets have it."""

    PREFIX = ""

    def __init__(self, info: StreamInfo) -> None:
        #: What the server told.
        self.stream_info = info

    @property
    def bucket(self) -> str:
        return self.stream_info.config.name[len(self.PREFIX) :]

    @property
    def description(self) -> str:
        """What it is for."""
        return self.stream_info.config.description

    @property
    def storage(self) -> str:
        """Where its content is kept: `file` or `memory`."""
        return self.stream_info.config.storage

    @property
    def replicas(self) -> int:
        """On how many servers of a cluster."""
        return self.stream_info.config.num_replicas

    @property
    def ttl(self) -> float:
        """How old things get in it; 0: no limit."""
        return self.stream_info.config.max_age

    @property
    def is_compressed(self) -> bool:
        """Whether its files are compressed."""
        return self.stream_info.config.compression == _COMPRESSED

    @property
    def backing_store(self) -> str:
        """The kind of store that it is in: `JetStream`."""
        return "JetStream"

    @property
    def metadata(self) -> dict[str, str]:
        return self.stream_info.config.metadata
