"""The origins of a stream's messages: mirrors and sources, and their parts."""

from __future__ import annotations

from .fields import Field, Fields
from .types import SEQUENCE, TEXT, TIME, Object, list_of

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    from typing_extensions import Unpack

    from .timestamp import Timestamp, TimestampLike

    class SubjectTransformDict(TypedDict, total=False):
        """The keywords of SubjectTransform."""

        src: str
        dest: str

    class ExternalStreamDict(TypedDict, total=False):
        """The keywords of ExternalStream."""

        api: str
        deliver: str

    class SourceConsumerDict(TypedDict, total=False):
        """The keywords of SourceConsumer."""

        name: str
        deliver_subject: str

    class StreamSourceDict(TypedDict, total=False):
        """The keywords of StreamSource."""

        name: str
        opt_start_seq: int
        opt_start_time: TimestampLike | None
        filter_subject: str
        subject_transforms: Sequence[SubjectTransform | SubjectTransformDict]
        external: ExternalStream | ExternalStreamDict | None
        consumer: SourceConsumer | SourceConsumerDict | None


class SubjectTransform(Fields):
    """A transform of subjects: those that match `src` become `dest`."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[SubjectTransformDict]) -> None: ...

    src: str
    dest: str

    FIELDS: tuple[Field, ...] = (
        Field("src", TEXT, "The subjects to transform, with wildcards; empty: all.", (2, 10)),
        Field("dest", TEXT, "The new subject, such as `a.{{wildcard(1)}}`.", (2, 10)),
    )


class ExternalStream(Fields):
    """The address of a stream in another account or domain."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[ExternalStreamDict]) -> None: ...

    api: str
    deliver: str

    FIELDS: tuple[Field, ...] = (
        Field("api", TEXT, "The prefix of its API, such as `$JS.hub.API`."),
        Field("deliver", TEXT, "The prefix of the subjects that its messages are delivered to."),
    )


class SourceConsumer(Fields):
    """An existing consumer for a mirror or source, instead of one of its own."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[SourceConsumerDict]) -> None: ...

    name: str
    deliver_subject: str

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The consumer; its ack_policy is `flow_control`.", (2, 14)),
        Field("deliver_subject", TEXT, "The subject that it delivers to.", (2, 14)),
    )


class StreamSource(Fields):
    """Another stream from which messages are copied."""

    if TYPE_CHECKING:

        def __init__(self, **fields: Unpack[StreamSourceDict]) -> None: ...

    name: str
    opt_start_seq: int
    opt_start_time: Timestamp | None
    filter_subject: str
    subject_transforms: list[SubjectTransform]
    external: ExternalStream | None
    consumer: SourceConsumer | None

    FIELDS: tuple[Field, ...] = (
        Field("name", TEXT, "The stream."),
        Field("opt_start_seq", SEQUENCE, "Copy from this sequence on; 0: from the first."),
        Field("opt_start_time", TIME, "Copy from this time on."),
        Field("filter_subject", TEXT, "Copy these subjects only; excludes subject_transforms."),
        Field(
            "subject_transforms",
            list_of(SubjectTransform),
            "Copy the subjects that match one of these, under the new subject.",
            (2, 10),
        ),
        Field(
            "external",
            Object(ExternalStream),
            "Its address, if it is in another account or domain.",
        ),
        Field(
            "consumer",
            Object(SourceConsumer),
            "The consumer to use; excludes opt_start_seq, opt_start_time and filter_subject.",
            (2, 14),
        ),
    )
