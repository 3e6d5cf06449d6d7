"""Buckets: the part that the key-value store and the object store share.

A bucket of either kind is a stream whose name starts with a prefix.
"""

from __future__ import annotations

from jetstream.api.stored import get_by_api, get_direct, get_direct_last
from jetstream.errors.api import StreamNotFound
from jetstream.errors.kv import BucketNotFound
from natsproto.errors import InvalidName, InvalidValue, RemoteError
from natsproto.wire.subjects import LETTERS_AND_DIGITS
from natsproto.wire.text import shorten

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    from jetstream.api.client import ApiClient
    from jetstream.api.stored import Getting
    from jetstream.config import StreamConfig
    from jetstream.schema.stream_info import StreamInfo
    from jetstream.streams.stream import Stream

    Same: TypeAlias = tuple[tuple[str, str], ...]

    class BucketConfig(Protocol):
        """The configuration of a bucket of either kind."""

        bucket: str
        compression: bool


# The fields that a bucket and its stream share: the name in each of them.
SAME = (
    ("description", "description"),
    ("ttl", "max_age"),
    ("max_bytes", "max_bytes"),
    ("storage", "storage"),
    ("replicas", "num_replicas"),
    ("placement", "placement"),
    ("metadata", "metadata"),
)
# The fields of a stream that the configuration of a bucket sets; others keep their values.
GOVERNED = tuple([theirs for _, theirs in SAME]) + ("compression",)
_COMPRESSED = "s2"
ROLLUP = "Nats-Rollup"


def check_chars(what: str, name: str, allowed: str, described: str, rule: str) -> str:
    """Raise InvalidName unless a name has only allowed characters; `described` names them."""
    if not isinstance(name, str):
        raise InvalidName("%s %s is not a str" % (what, shorten(name)), rule)
    if not name:
        raise InvalidName("%s is empty" % what, rule)
    for char in name:
        if char not in allowed:
            text = "%s %s contains %r; allowed are %s"
            raise InvalidName(text % (what, shorten(name), char, described), rule)
    return name


def check_bucket_name(bucket: str, rule: str) -> str:
    """Raise InvalidName unless this is a valid name of a bucket."""
    allowed = LETTERS_AND_DIGITS + "-_"
    return check_chars("bucket", bucket, allowed, "letters, digits, - and _", rule)


def check_given(kind: type, given: object, rule: str) -> None:
    """Raise InvalidValue unless this is a configuration of this class, or None."""
    if given is not None and not isinstance(given, kind):
        text = "%s is not of type %s" % (shorten(given), kind.__name__)
        if isinstance(given, str):
            text += "; pass a name as a keyword: bucket=%s" % shorten(given)
        raise InvalidValue(text, rule)


def write_stream(config: BucketConfig, stream: StreamConfig, same: Same = SAME) -> None:
    """Copy fields of a bucket to its stream; defaults are left to the server."""
    for name, theirs in same:
        value = getattr(config, name)
        if value:
            setattr(stream, theirs, value)
    if config.compression:
        stream.compression = _COMPRESSED


def read_stream(config: BucketConfig, stream: StreamConfig, prefix: str, same: Same = SAME) -> None:
    """Copy fields of a stream to its bucket; the stream's name is the prefix and the bucket."""
    config.bucket = stream.name[len(prefix) :]
    for name, theirs in same:
        setattr(config, name, getattr(stream, theirs))
    config.compression = stream.compression == _COMPRESSED


def read_message(
    api: ApiClient, stream: str, subject: str, *, seq: int | None = None, direct: bool
) -> Getting:
    """Return the last message of a subject, or the one of this sequence; raise MessageNotFound.

    `direct`: read from any replica if the stream allows it; otherwise from the leader.
    """
    # Like the functions that it calls, this returns a coroutine without being one.
    body: dict[str, Any] = {"last_by_subj": subject} if seq is None else {"seq": seq}
    if not direct:
        return get_by_api(api, stream, body)
    # KV-26, OBJ-15: if the stream was changed or deleted, the API is asked
    if seq is None:
        return get_direct_last(api, stream, subject, body)
    return get_direct(api, stream, body, body)


async def check_there(stream: Stream, bucket: str) -> None:
    """Raise BucketNotFound if the bucket was deleted, so that publishes get a 503 (D-KV-48)."""
    try:
        await stream.info()
    except StreamNotFound:
        raise BucketNotFound(bucket) from None
    except RemoteError:
        pass  # for example because JetStream is down


class BucketStatus:
    """The configuration and the state of a bucket, as far as both kinds share them."""

    PREFIX = ""

    def __init__(self, info: StreamInfo) -> None:
        #: The info of the stream.
        self.stream_info = info

    @property
    def bucket(self) -> str:
        """The name of the bucket."""
        return self.stream_info.config.name[len(self.PREFIX) :]

    @property
    def description(self) -> str:
        """The description of the bucket."""
        return self.stream_info.config.description

    @property
    def storage(self) -> str:
        """The storage of the bucket: `file` or `memory`."""
        return self.stream_info.config.storage

    @property
    def replicas(self) -> int:
        """The number of servers of a cluster that store the bucket."""
        return self.stream_info.config.num_replicas

    @property
    def ttl(self) -> float:
        """The maximum age of the contents in seconds; 0: no limit."""
        return self.stream_info.config.max_age

    @property
    def is_compressed(self) -> bool:
        """Whether the files of the bucket are compressed."""
        return self.stream_info.config.compression == _COMPRESSED

    @property
    def backing_store(self) -> str:
        """The technology that stores the bucket: `JetStream`."""
        return "JetStream"

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the bucket."""
        return self.stream_info.config.metadata
