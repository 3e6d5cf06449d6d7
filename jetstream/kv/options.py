"""WatchTarget and WatchOptions: what to watch, and how; checked before anything is sent."""

from __future__ import annotations

from jetstream.schema.types import MOST_SEQUENCE
from natsproto.errors import InvalidValue
from natsproto.session import check_count, check_flag

from .coding import PLAIN
from .names import ALL_KEYS, check_filters

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from jetstream.api.client import ApiClient
    from jetstream.schema.consumer_config import DeliverPolicy

    from .coding import Plain


class WatchTarget:
    """The part of a stream that is watched: the subjects that start with `prefix`.

    history    how many entries of a key the stream keeps
    whole      whether all subjects of the stream start with the prefix
    coding     how the stream stores keys and values
    """

    __slots__ = ("api", "bucket", "coding", "history", "prefix", "stream", "whole")

    def __init__(
        self,
        api: ApiClient,
        stream: str,
        bucket: str,
        prefix: str,
        *,
        history: int = 1,
        whole: bool = False,
        coding: Plain = PLAIN,
    ) -> None:
        self.api: ApiClient = api
        self.stream: str = stream
        self.bucket: str = bucket
        self.prefix: str = prefix
        self.history: int = history
        self.whole: bool = whole
        self.coding: Plain = coding


class WatchOptions:
    """The keys to watch, and where to begin; KeyValue.watch describes the options.

    With codecs, `keys` is already encoded.
    """

    __slots__ = ("filters", "ignore_deletes", "meta_only", "policy", "start")

    def __init__(
        self,
        keys: str | Sequence[str] = ALL_KEYS,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_from_revision: int | None = None,
    ) -> None:
        self.filters: list[str] = check_filters(keys)
        check_flag("include_history", include_history)
        check_flag("updates_only", updates_only)
        self.ignore_deletes: bool = check_flag("ignore_deletes", ignore_deletes)
        self.meta_only: bool = check_flag("meta_only", meta_only)  # KV-34
        resumed = resume_from_revision is not None
        if include_history + updates_only + resumed > 1:
            text = "only one of include_history, updates_only and resume_from_revision can be given"
            raise InvalidValue(text, "KV-33")
        if resume_from_revision is not None:
            check_count("resume_from_revision", resume_from_revision, 1, MOST_SEQUENCE, "KV-33")
        self.policy: DeliverPolicy = "by_start_sequence" if resumed else "last_per_subject"
        if include_history or updates_only:
            self.policy = "all" if include_history else "new"
        self.start: int | None = resume_from_revision
