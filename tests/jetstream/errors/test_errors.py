from __future__ import annotations

import pickle
import re

import pytest

from jetstream import errors
from jetstream.errors import (
    ApiError,
    ConsumerDeleted,
    FastBatchFailed,
    NoStreamResponse,
    PublishesFailed,
    PullFailed,
    ResetFailed,
    StreamNotFound,
)
from jetstream.errors import api as api_errors
from natsproto.errors import NatsError, TimeoutExpired


def test_the_errors_of_the_api_are_here_too():
    for name, value in vars(api_errors).items():
        if getattr(value, "__module__", "") == api_errors.__name__:
            assert getattr(errors, name) is value, name
    assert errors.BY_CODE is api_errors.BY_CODE


def test_no_stream_response():
    error = NoStreamResponse("orders.new")
    assert str(error) == "no stream accepts subject 'orders.new'"
    assert error.subject == "orders.new"


def test_publishes_failed():
    class Failed:
        subject = "orders.new"
        error = NoStreamResponse("orders.new")

    error = PublishesFailed([Failed(), Failed()])
    assert len(error.publications) == 2
    assert str(error) == (
        "2 publishes failed, the first one to 'orders.new': no stream accepts subject 'orders.new'"
    )


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        ((2, 5, False, None), "2 of 5 messages of the batch were stored, the others were not"),
        ((2, 5, True, None), "2 of 5 .* the others may have been: no response"),
        ((0, 1, False, ApiError(400, 10071, "x")), "0 of 1 .* were not: x"),
    ],
)
def test_fast_batch_failed(failure, text):
    error = FastBatchFailed(*failure)
    assert re.match(text, str(error))
    again = pickle.loads(pickle.dumps(error))
    assert (again.stored, again.sent, again.in_doubt) == failure[:3]
    assert str(again) == str(error)


def test_reset_failed():
    error = ResetFailed(3, StreamNotFound(404, 10059, "stream not found"))
    assert "in 3 attempts: stream not found (404, 10059)" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.attempts, again.error.err_code) == (3, 10059)


def test_no_stream_response_with_a_reason():
    error = errors.NoStreamResponse("a", "it is off")
    assert str(error) == "no stream accepts subject 'a': it is off"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.subject, copy.why) == (str(error), "a", "it is off")


@pytest.mark.rule("D-PUB-21")
def test_a_publish_that_timed_out_is_both():
    error = errors.PublishTimeout("no answer in time")
    assert isinstance(error, errors.PublishInDoubt)
    assert isinstance(error, TimeoutExpired)
    assert str(pickle.loads(pickle.dumps(error))) == "no answer in time"
    # A class that cannot have both bases, like exceptions on MicroPython, has only the first.
    assert errors._with_two_bases("X", "", int, str).__mro__[1:] == (int, object)


def test_pull_failed():
    error = ConsumerDeleted(409, "Consumer Deleted")
    assert isinstance(error, PullFailed)
    assert (str(error), error.code, error.description) == (
        "409 Consumer Deleted",
        409,
        "Consumer Deleted",
    )
    assert str(PullFailed(503, "")) == "503"


@pytest.mark.rule("D-FETCH-18", "D-PULL-17")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (errors.ConsumerDeleted, "failed: 409 x (the consumer or its stream was deleted, or the"),
        (
            errors.ConsumerUnavailable,
            "failed: 409 x (the consumer or its stream does not exist, has",
        ),
        (errors.PullRefused, "failed: 409 x (the request exceeds a limit of the consumer, or"),
        (errors.ConsumerIsPush, "failed: 409 x"),
        (errors.UnknownStatus, "failed: 409 x"),
    ],
)
def test_a_failed_pull_names_its_consumer_and_the_reason(error, text):
    made = error(409, "x", "consumer 'c' of stream 'S'")
    assert str(made).startswith("pull from consumer 'c' of stream 'S' " + text)
    again = pickle.loads(pickle.dumps(made))
    assert (type(again), str(again), again.code) == (error, str(made), 409)


def test_a_failed_snapshot():
    error = errors.SnapshotFailed("'S'", 408, "No Interest")
    assert str(error) == "snapshot of stream 'S' failed: 408 No Interest"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.stream, copy.code) == (str(error), "'S'", 408)
    lost = errors.SnapshotFailed("'S'", 0, "the connection was lost")
    assert str(lost) == "snapshot of stream 'S' failed: the connection was lost"


def test_several_streams():
    error = errors.AmbiguousStream("s.*", ["A", "B"])
    assert str(error) == "subject 's.*' is accepted by several streams: ['A', 'B']"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.subject, copy.streams) == (str(error), "s.*", ["A", "B"])


def test_consumer_moved():
    error = errors.ConsumerMoved("S", "c", "t")
    assert str(error) == "consumer 'c' of stream 'S' now delivers to 't'"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.stream, copy.consumer, copy.target) == (str(error), "S", "c", "t")


def test_bind_refused():
    error = errors.ConfigMismatch("it differs", "BIND-10", "S", "c", 3, -1)
    error.field = "max_deliver"
    assert (str(error), error.rule) == ("it differs (BIND-10)", "BIND-10")
    assert isinstance(error, errors.BindRefused)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.args, vars(copy)) == (str(error), error.args, vars(error))


def test_every_exception_has_a_docstring():
    for name, cls in vars(errors).items():
        if isinstance(cls, type) and issubclass(cls, NatsError):
            assert cls.__doc__, name


def test_errors_that_are_imported_on_first_use_are_listed():
    listed = dir(errors)
    assert {"InvalidResponse", "JetStreamError", "KeyNotFound", "QueueMismatch"} <= set(listed)
    assert all(hasattr(errors, name) for name in listed)
