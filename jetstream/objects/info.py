"""ObjectInfo: the description of an object, which is stored as a message of its bucket.

ObjectMeta is the part of it that users set.
"""

from __future__ import annotations

from jetstream.api.client import encode_json, read_object
from jetstream.errors import InvalidResponse
from jetstream.kv.names import check_key
from jetstream.schema.fields import Field, Fields
from jetstream.schema.types import (
    COUNT,
    FLAG,
    MAP,
    MAP_OF_ANY,
    SEQUENCE,
    TEXT,
    TEXTS,
    TIME,
    FieldType,
    Object,
    TypeMismatch,
)
from natsproto.errors import InvalidHeader, InvalidName
from natsproto.wire.headers import Headers
from natsproto.wire.text import shorten

from .names import encode_url

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from typing_extensions import Unpack

    from jetstream.schema.timestamp import Timestamp
    from natsproto.wire.headers import HeadersLike

    class ObjectLinkDict(TypedDict, total=False):
        """The keywords of ObjectLink."""

        bucket: str
        name: str

    class ObjectMetaOptionsDict(TypedDict, total=False):
        """The keywords of ObjectMetaOptions."""

        link: ObjectLink | ObjectLinkDict | None
        max_chunk_size: int

    class ObjectMetaDict(TypedDict, total=False):
        """The keywords of ObjectMeta."""

        name: str
        description: str
        headers: HeadersLike
        metadata: dict[str, str]
        options: ObjectMetaOptions | ObjectMetaOptionsDict | None


_ALGORITHM = "SHA-256="


class _HeaderMap(FieldType):
    """A map from header names to lists of values; a single value is accepted as well."""

    label = "map from text to list of text"
    mutable = True

    def zero(self) -> dict[str, list[str]]:
        return {}

    def check(self, value: Any) -> dict[str, list[str]]:
        try:
            headers = Headers(value)
        except InvalidHeader as error:
            raise TypeMismatch("are not headers: %s" % error) from None
        return {name: headers.get_all(name) for name in headers}

    def decode(self, raw: Any) -> dict[str, list[str]]:
        # Other clients may have stored values that our own check would reject.
        found = MAP_OF_ANY.decode(raw)
        return {
            name: TEXTS.decode(found[name] if isinstance(found[name], list) else [found[name]])
            for name in found
        }


class ObjectLink(Fields):
    """The target of a link: an object in a bucket or, without a name, the whole bucket."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ObjectLinkDict]) -> None: ...

    bucket: str
    name: str

    FIELDS: tuple[Field, ...] = (
        Field("bucket", TEXT, "The bucket.", always=True),
        Field("name", TEXT, "The object in that bucket; empty: the whole bucket."),
    )


class ObjectMetaOptions(Fields):
    """The storage options of an object."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ObjectMetaOptionsDict]) -> None: ...

    link: ObjectLink | None
    max_chunk_size: int

    FIELDS: tuple[Field, ...] = (
        Field("link", Object(ObjectLink), "The target, if the object is a link."),
        Field("max_chunk_size", COUNT, "Size of a chunk in bytes; 0: 131072."),
    )


class ObjectMeta(Fields):
    """The part of an object's info that users set."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ObjectMetaDict]) -> None: ...

    name: str
    description: str
    headers: dict[str, list[str]]
    metadata: dict[str, str]
    options: ObjectMetaOptions | None

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The name: any text that is not empty.", always=True),
        Field("description", TEXT, "A description."),
        Field("headers", _HeaderMap(), "Headers; for each name a list of values."),
        Field("metadata", MAP, "User-defined metadata."),
        Field("options", Object(ObjectMetaOptions), "Storage options."),
    )


class ObjectInfo(ObjectMeta):
    """The info of an object: the fields that users set, and those that describe its data."""

    bucket: str
    nuid: str
    size: int
    mtime: Timestamp | None
    chunks: int
    digest: str
    deleted: bool

    FIELDS: tuple[Field, ...] = ObjectMeta.FIELDS + (
        Field("bucket", TEXT, "The bucket of the object.", always=True),
        Field("nuid", TEXT, "The id in the subject of its chunks.", always=True),
        Field("size", SEQUENCE, "Size in bytes.", always=True),
        Field("mtime", TIME, "Time of the last put or change; not stored in the message."),
        Field("chunks", SEQUENCE, "Number of chunks.", always=True),
        Field("digest", TEXT, "`SHA-256=` and the digest of its bytes."),
        Field("deleted", FLAG, "The object was deleted."),
    )

    @property
    def link(self) -> ObjectLink | None:
        """The target, if the object is a link; otherwise None."""
        return None if self.options is None else self.options.link

    def encode(self) -> bytes:
        """Return the payload of the message that stores this info."""
        json = self.to_json()
        json.pop("mtime", None)  # OBJ-11
        if not self.digest:
            json.pop("digest", None)
        return encode_json(json)


def read_info(data: bytes, time: Timestamp) -> ObjectInfo:  # OBJ-10
    """Return the info in a message that was stored at `time`; raise InvalidResponse (OBJ-16)."""
    json = read_object(data)
    json.pop("mtime", None)  # OBJ-11
    info = ObjectInfo.from_json(json)
    if not info.name:
        raise InvalidResponse("object info has no name: %s" % shorten(data))
    if info.nuid or info.chunks or info.size:  # OBJ-42: nats.js writes links without one
        try:
            check_key(info.nuid)  # a wildcard would match the chunks of others
        except InvalidName as error:
            text = "object %s has a nuid that is not part of a subject: %s"
            raise InvalidResponse(text % (shorten(info.name), error)) from None
    info.mtime = time
    return info


def write_digest(raw: bytes) -> str:
    """Return the digest field for these 32 bytes of SHA-256 (OBJ-23)."""
    return _ALGORITHM + encode_url(raw)


def same_digest(digest: str, raw: bytes) -> bool:
    """Return whether a digest field represents these 32 bytes of SHA-256 (D-OBJ-30)."""
    if not digest:
        return True
    algorithm, text = digest[: len(_ALGORITHM)], digest[len(_ALGORITHM) :]
    text = text.replace("+", "-").replace("/", "_").rstrip("=")
    return algorithm.upper() == _ALGORITHM and text == encode_url(raw).rstrip("=")
