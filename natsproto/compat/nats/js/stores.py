"""The dataclasses of buckets: key-value stores and object stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Base
from .enums import StorageType
from .streams import Placement, RePublish


@dataclass
class KeyValueConfig(Base):
    """The configuration of a key-value store."""

    bucket: str
    description: str | None = None
    max_value_size: int | None = None
    history: int = 1
    ttl: float | None = None
    max_bytes: int | None = None
    storage: StorageType | None = None
    replicas: int = 1
    placement: Placement | None = None
    republish: RePublish | None = None
    direct: bool | None = None
    limit_marker_ttl: float | None = None

    DURATIONS: ClassVar[tuple[str, ...]] = ("ttl",)
    LOCAL: ClassVar[tuple[str, ...]] = ("limit_marker_ttl",)


@dataclass
class ObjectStoreConfig(Base):
    """The configuration of an object store."""

    bucket: str | None = None
    description: str | None = None
    ttl: float | None = None
    max_bytes: int | None = None
    storage: StorageType | None = None
    replicas: int = 1
    placement: Placement | None = None

    DURATIONS: ClassVar[tuple[str, ...]] = ("ttl",)


@dataclass
class ObjectLink(Base):
    """The target of a link: an object, or a whole bucket."""

    bucket: str
    name: str | None = None


@dataclass
class ObjectMetaOptions(Base):
    """How an object is stored."""

    link: ObjectLink | None = None
    max_chunk_size: int | None = None

    OBJECTS: ClassVar[dict[str, Any]] = {"link": ObjectLink}


@dataclass
class ObjectMeta(Base):
    """The description of an object by its owner."""

    name: str | None = None
    description: str | None = None
    headers: dict[str, Any] | None = None
    options: ObjectMetaOptions | None = None

    OBJECTS: ClassVar[dict[str, Any]] = {"options": ObjectMetaOptions}


@dataclass
class ObjectInfo(Base):
    """The description of a stored object."""

    name: str
    bucket: str
    nuid: str
    size: int | None = None
    mtime: str | None = None
    chunks: int | None = None
    digest: str | None = None
    deleted: bool | None = False
    description: str | None = None
    headers: dict[str, Any] | None = None
    options: ObjectMetaOptions | None = None

    OBJECTS: ClassVar[dict[str, Any]] = {"options": ObjectMetaOptions}

    @property
    def meta(self) -> ObjectMeta:
        """The part that its owner sets."""
        return ObjectMeta(
            name=self.name,
            description=self.description,
            headers=self.headers,
            options=self.options,
        )

    def is_link(self) -> bool:
        """Return whether the object is a link."""
        return self.options is not None and self.options.link is not None
