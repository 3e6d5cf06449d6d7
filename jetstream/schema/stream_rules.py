"""Rules for the configuration of a stream that the server enforces, each with its id.

These are the rules that have been stable and depend on the configuration alone. Rules that depend
on other streams, the account or the cluster are left to the server, and so are settings that it
silently corrects.
"""

from __future__ import annotations

from natsproto.errors import InvalidValue
from natsproto.wire.subjects import check_known_name, check_new_name, check_publish, check_subscribe
from natsproto.wire.text import shorten

from .fields import refuse

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from .fields import Fields, Refusal
    from .stream_config import StreamConfig
    from .stream_sources import StreamSource

MAX_DESCRIPTION = 4096  # bytes
MAX_METADATA = 131072  # bytes, keys and values
MAX_REPLICAS = 5


def check_stream(config: StreamConfig, new: bool) -> None:
    """Raise LocalError for the first rule that is broken; `new`: see StreamConfig.check."""
    (check_new_name if new else check_known_name)("stream", config.name)  # STREAM-1
    for subject in config.subjects:
        check_subscribe(subject, "subject of stream %s" % shorten(config.name))  # STREAM-2
    check_limits(config, config.description, config.metadata, "STREAM-3", "STREAM-4")
    refuse(config, _REFUSED)
    if config.subject_transform is not None and config.subject_transform.src:
        check_subscribe(config.subject_transform.src, "source of a transform")
    if config.republish is not None and config.republish.src:
        check_subscribe(config.republish.src, "source of republish")
    if config.mirror is not None:
        _check_mirror(config, config.mirror)
    for source in config.sources:
        check_known_name("source", source.name)  # STREAM-17
        _check_source(source)


def check_limits(
    config: Fields, description: str, metadata: dict[str, str], rule: str, rule_of_metadata: str
) -> None:
    """Check the two limits that streams and consumers share, in bytes."""
    size = len(description.encode())
    if size > MAX_DESCRIPTION:
        text = "%s.description has %d bytes, more than %d"
        raise InvalidValue(text % (type(config).__name__, size, MAX_DESCRIPTION), rule)
    size = sum([len(key.encode()) + len(metadata[key].encode()) for key in metadata])
    if size > MAX_METADATA:
        text = "%s.metadata has %d bytes, more than %d"
        raise InvalidValue(text % (type(config).__name__, size, MAX_METADATA), rule_of_metadata)


def _check_mirror(config: StreamConfig, mirror: StreamSource) -> None:
    for name in _NOT_FOR_MIRRORS:
        value = getattr(config, name)
        if value:
            text = "StreamConfig with mirror=%s and %s=%s: a mirror copies its origin"
            raise InvalidValue(text % (shorten(mirror), name, shorten(value)), "STREAM-14")
    # The name of an external stream is not checked.
    if mirror.external is None:
        check_known_name("mirror", mirror.name)
    _check_source(mirror)


def _check_source(source: StreamSource) -> None:
    refuse(source, _REFUSED_SOURCES)
    if source.filter_subject:
        check_subscribe(source.filter_subject, "filter subject of source %s" % shorten(source.name))
    for transform in source.subject_transforms:
        if transform.src:
            check_subscribe(transform.src, "source of a transform")
    if source.consumer is not None:
        check_known_name("consumer of a source", source.consumer.name)
        check_publish(source.consumer.deliver_subject, "deliver subject of a source's consumer")
    if source.external is not None:
        for prefix in (source.external.api, source.external.deliver):
            if prefix:
                check_publish(prefix, "prefix of an external stream")  # STREAM-20


_NOT_FOR_MIRRORS = (
    "subjects",
    "sources",
    "first_seq",
    "allow_msg_counter",
    "allow_atomic",
    "allow_batched",
    "allow_msg_schedules",
    "subject_delete_marker_ttl",
)

# Rule, the fields that it applies to, the condition that breaks it, and the reason; the first row
# that applies is reported.
_REFUSED: list[Refusal[StreamConfig]] = [
    (
        "STREAM-5",
        ("num_replicas",),
        lambda c: not 0 <= c.num_replicas <= MAX_REPLICAS,
        "a stream has 1 to 5 replicas",
    ),
    ("STREAM-6", ("max_age",), lambda c: 0 < c.max_age < 0.1, "the minimum is 0.1 s"),
    (
        "STREAM-7",
        ("duplicate_window",),
        lambda c: 0 < c.duplicate_window < 0.1,
        "the minimum is 0.1 s",
    ),
    (
        "STREAM-7",
        ("duplicate_window", "max_age"),
        lambda c: c.max_age and c.duplicate_window > c.max_age,
        "ids cannot be kept longer than messages",
    ),
    (
        "STREAM-8",
        ("allow_rollup_hdrs", "deny_purge"),
        lambda c: c.allow_rollup_hdrs and c.deny_purge,
        "a rollup purges",
    ),
    (
        "STREAM-9",
        ("allow_msg_counter", "discard"),
        lambda c: c.allow_msg_counter and c.discard == "new",
        "counters need discard old",
    ),
    (
        "STREAM-9",
        ("allow_msg_counter", "retention"),
        lambda c: c.allow_msg_counter and c.retention != "limits",
        "counters need retention limits",
    ),
    (
        "STREAM-9",
        ("allow_msg_counter", "allow_msg_ttl", "allow_msg_schedules"),
        lambda c: c.allow_msg_counter and (c.allow_msg_ttl or c.allow_msg_schedules),
        "counters exclude TTLs and schedules",
    ),
    (
        "STREAM-10",
        ("discard_new_per_subject", "discard", "max_msgs_per_subject"),
        lambda c: c.discard_new_per_subject and (c.discard != "new" or c.max_msgs_per_subject <= 0),
        "it needs discard new and max_msgs_per_subject",
    ),
    (
        "STREAM-11",
        ("subject_delete_marker_ttl",),
        lambda c: 0 < c.subject_delete_marker_ttl < 1,
        "the minimum is 1 s",
    ),
    (
        "STREAM-12",
        ("allow_msg_schedules", "discard", "sources"),
        lambda c: c.allow_msg_schedules and (c.discard == "new" or c.sources),
        "schedules exclude discard new and sources",
    ),
    (
        "STREAM-13",
        ("persist_mode", "storage", "num_replicas", "allow_atomic"),
        lambda c: (
            c.persist_mode == "async"
            and (c.storage != "file" or c.num_replicas > 1 or c.allow_atomic)
        ),
        "async needs storage file and one replica, and excludes atomic batches",
    ),
    (
        "STREAM-15",
        ("mirror_direct",),
        lambda c: c.mirror_direct and c.mirror is None,
        "this is not a mirror",
    ),
    (
        "STREAM-16",
        ("placement",),
        lambda c: c.placement is not None and c.placement.preferred,
        "a stream cannot have a preferred server",
    ),
]

_REFUSED_SOURCES: list[Refusal[StreamSource]] = [
    (
        "STREAM-18",
        ("filter_subject", "subject_transforms"),
        lambda c: c.filter_subject and c.subject_transforms,
        "only one of the two can be given",
    ),
    (
        "STREAM-19",
        ("consumer", "opt_start_seq", "opt_start_time", "filter_subject"),
        lambda c: (
            c.consumer is not None
            and (c.opt_start_seq or c.opt_start_time is not None or c.filter_subject)
        ),
        "the consumer has its own start and filter",
    ),
]
