"""WatchOptions: the options of a watch, checked before anything is sent."""

from __future__ import annotations

from jetstream.schema.types import MOST_SEQUENCE
from natsproto.errors import InvalidValue
from natsproto.session import check_count, check_flag

from .names import ALL_KEYS, check_filters

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from jetstream.schema.consumer_config import DeliverPolicy

    class WatchKeywords(TypedDict, total=False):
        """The keywords of WatchOptions, for functions that forward them."""

        include_history: bool
        ignore_deletes: bool
        meta_only: bool
        updates_only: bool
        resume_from_revision: int | None


class WatchOptions:
    """The keys to watch, and where to begin; KeyValue.watch describes the options."""

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
        starts: list[tuple[str, DeliverPolicy, bool]] = [
            ("include_history", "all", include_history),
            ("updates_only", "new", updates_only),
            ("resume_from_revision", "by_start_sequence", resumed),
        ]
        starts = [each for each in starts if each[2]]
        if len(starts) > 1:
            names = " and ".join([name for name, _, _ in starts])
            raise InvalidValue("%s: only one of them can be given" % names, "KV-33")
        if resume_from_revision is not None:
            check_count("resume_from_revision", resume_from_revision, 1, MOST_SEQUENCE, "KV-33")
        self.policy: DeliverPolicy = starts[0][1] if starts else "last_per_subject"
        self.start: int | None = resume_from_revision
