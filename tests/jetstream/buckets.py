"""Helpers for tests of key-value buckets and object stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jetstream import JetStream
from jetstream.errors import (
    BucketExists,
    BucketNotFound,
    StreamNameInUse,
    StreamNotFound,
    SubjectOverlap,
)
from natsproto.errors import InvalidName
from tests.jetstream.support import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

TIME = "2026-11-15T23:55:50.159073055Z"
NO_STREAM = {"error": {"code": 404, "err_code": 10059, "description": "stream not found"}}
IN_USE = {"error": {"code": 400, "err_code": 10058, "description": "name in use"}}
OVERLAP = {"error": {"code": 400, "err_code": 10065, "description": "subjects overlap"}}

# A stream of that name with other subjects.
OTHER = {"config": {"name": "X", "subjects": ["x"], "max_msgs_per_subject": 1}}

NO_BUCKETS = ["", "a.b", "a b", "a*", ">", "é", "a/b", "a=b", 7, None, b"b"]
NOT_MADE = [
    # call; the server's answers; the error, and a base class of it
    ("create", [IN_USE, OTHER], BucketExists, StreamNameInUse),
    ("create", [IN_USE, NO_STREAM], BucketNotFound, StreamNotFound),
    ("create", [OVERLAP], SubjectOverlap, SubjectOverlap),
    ("update", [NO_STREAM], BucketNotFound, StreamNotFound),
    ("update", [OTHER, NO_STREAM], BucketNotFound, StreamNotFound),
    ("create_or_update", [NO_STREAM, NO_STREAM, OVERLAP], SubjectOverlap, SubjectOverlap),
    ("create_or_update", [OTHER, OVERLAP], SubjectOverlap, SubjectOverlap),
]


# The response to STREAM.INFO after a reset: the stream was there before its consumers.
SAME_STREAM = {"config": {}, "created": "2020-01-01T00:00:00Z"}


def created(
    stream: str, name: str, pending: int = 0, serial: int = 1, seq: int = 0, sent: int = 0
) -> dict[str, Any]:
    """Return the info of an existing consumer with this many pending messages."""
    return {
        "stream_name": stream,
        "name": "%s_%d" % (name, serial),
        "created": TIME,
        "config": {},
        "delivered": {"consumer_seq": sent, "stream_seq": seq},
        "num_pending": pending,
    }


def state(stream: str, last: int, subjects: dict[str, int] | int) -> dict[str, Any]:
    """Return a stream's answer before a watch begins: its number of subjects, or their names."""
    fields: dict[str, Any] = {"last_seq": last}
    answer: dict[str, Any] = {"config": {"name": stream}, "state": fields}
    if isinstance(subjects, int):
        fields["num_subjects"] = subjects
    else:
        fields["subjects"] = subjects
        answer["total"] = len(subjects)
    return answer


def check_no_bucket(bucket: Any, checks: tuple[Callable[[str], str], ...], rule: str) -> None:
    """Check that all of these functions reject the name of a bucket."""
    for check in checks:
        with pytest.raises(InvalidName, match="bucket") as caught:
            check(bucket)
        assert caught.value.rule == rule
        if isinstance(bucket, str) and bucket:
            assert repr(bucket) in str(caught.value)


def check_not_made(
    stage: Stage, buckets: Any, call: str, error: type[Exception], also: type[Exception]
) -> None:
    """Check that a call does not create bucket `b`, and that the error names it."""
    with pytest.raises(error) as caught:
        stage.run(getattr(buckets, call)(None, {"bucket": "b"}))
    assert isinstance(caught.value, also)
    assert getattr(caught.value, "bucket", "b") == "b"


def check_call(
    call: str,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    answer: Any,
    endpoint: str,
    gives: Any,
    status: type,
) -> None:
    """Check the requests and the result of a call of JetStream, in a domain."""
    update = ".UPDATE." in endpoint
    stage = Stage(*[answer] * (2 if update else 1))
    js = JetStream(stage.client, domain="hub")
    found = stage.run(getattr(js, call)(*args, **keywords))
    assert isinstance(found, gives)
    if gives is list:
        assert len(found) == 1
        assert isinstance(found[0], (str, status))
    endpoints = [endpoint.replace("UPDATE", "INFO"), endpoint] if update else [endpoint]
    assert [subject for subject, _ in stage.asked] == ["$JS.hub.API." + each for each in endpoints]
