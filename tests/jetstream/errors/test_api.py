from __future__ import annotations

import pickle

import pytest

from jetstream.errors import api as api_errors
from jetstream.errors.api import (
    BY_CODE,
    ApiError,
    BadRequest,
    ConfigExists,
    ConsumerDoesNotExist,
    ConsumerNotFound,
    InsufficientResources,
    InvalidJson,
    JetStreamError,
    NoSuitablePeers,
    StoreFailed,
    StreamNotFound,
    WrongLastSequence,
    api_error,
)
from natsproto.errors import NatsError, RemoteError

CLASSES = [  # err_code, name of the class
    (10003, "BadRequest"),
    (10005, "NoSuitablePeers"),
    (10008, "TemporarilyUnavailable"),
    (10013, "ConsumerExists"),
    (10014, "ConsumerNotFound"),
    (10023, "InsufficientResources"),
    (10025, "InvalidJson"),
    (10026, "ConsumerLimitReached"),
    (10027, "StreamLimitReached"),
    (10037, "MessageNotFound"),
    (10039, "JetStreamNotEnabled"),
    (10047, "InsufficientResources"),
    (10052, "InvalidConfig"),
    (10054, "MessageTooLarge"),
    (10058, "StreamNameInUse"),
    (10059, "StreamNotFound"),
    (10060, "WrongStream"),
    (10065, "SubjectOverlap"),
    (10070, "WrongLastMsgId"),
    (10071, "WrongLastSequence"),
    (10076, "JetStreamNotEnabled"),
    (10077, "StoreFailed"),
    (10100, "WorkQueueConflict"),
    (10109, "StreamSealed"),
    (10118, "AssetOffline"),
    (10148, "ConsumerExists"),
    (10149, "ConsumerDoesNotExist"),
    (10158, "DuplicateInProcess"),
    (10164, "WrongLastSequence"),
    (10165, "TtlInvalid"),
    (10166, "TtlDisabled"),
    (10167, "TooManyRequests"),
    (10171, "CounterRefused"),
    (10176, "BatchRefused"),
    (10185, "ApiLevelTooHigh"),
    (10189, "ScheduleRefused"),
    (10999, "ApiError"),
]


@pytest.mark.rule("JSERR-1", "JSERR-2")
@pytest.mark.parametrize(("err_code", "name"), CLASSES)
def test_class_by_err_code(err_code, name):
    error = api_error({"code": 400, "err_code": err_code, "description": "so it is"})
    assert type(error).__name__ == name
    assert isinstance(error, JetStreamError)
    assert isinstance(error, RemoteError)
    assert (error.code, error.err_code, error.description) == (400, err_code, "so it is")
    assert str(error).startswith(f"so it is (400, {err_code})")


@pytest.mark.rule("JSERR-7")
@pytest.mark.parametrize(
    ("err_code", "field"),
    [
        (10166, "allow_msg_ttl"),
        (10168, "allow_msg_counter"),
        (10174, "allow_atomic"),
        (10188, "allow_msg_schedules"),
        (10205, "allow_batched"),
        (10059, ""),
    ],
)
def test_errors_about_disabled_features_name_the_field(err_code, field):
    error = api_error({"code": 400, "err_code": err_code, "description": "it is disabled"})
    assert error.needs == field
    hint = f"; the stream needs {field}=True" if field else ""
    assert str(error) == f"it is disabled (400, {err_code}){hint}"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.needs) == (str(error), field)


@pytest.mark.rule("D-JSERR-6")
@pytest.mark.parametrize("err_code", [10058, 10013, 10105, 10148])
def test_exists_errors_name_the_fields_that_differ(err_code):
    error = api_error({"code": 400, "err_code": err_code, "description": "it exists"})
    assert isinstance(error, ConfigExists)
    assert str(error) == f"it exists (400, {err_code})"
    error.asked = "IT"
    error.different = ["a is 1, not 2", "b is 3, not 4"]
    text = f"it exists (400, {err_code}), in response to IT: a is 1, not 2; b is 3, not 4"
    copy = pickle.loads(pickle.dumps(error))
    assert str(error) == str(copy) == text
    assert copy.different == error.different


def test_text():
    error = api_error({"code": 404, "err_code": 10059, "description": "stream not found"})
    assert str(error) == "stream not found (404, 10059)"
    error.asked = "STREAM.INFO.S"
    assert str(error) == "stream not found (404, 10059), in response to STREAM.INFO.S"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.rule("JSERR-2")
def test_the_table():
    assert set(BY_CODE) >= {code for code, name in CLASSES if name != "ApiError"}
    for err_code, cls in BY_CODE.items():
        assert 10000 < err_code < 20000
        assert issubclass(cls, ApiError)
        assert cls is not ApiError
    assert issubclass(ConsumerDoesNotExist, ConsumerNotFound)
    assert issubclass(NoSuitablePeers, InsufficientResources)
    assert issubclass(InvalidJson, BadRequest)


@pytest.mark.rule("JSERR-5")
@pytest.mark.parametrize(
    ("error", "code", "err_code", "description"),
    [
        ({}, 0, 0, "error without a description"),
        ({"code": 500, "description": "old server"}, 500, 0, "old server"),
        (
            {"code": "500", "err_code": "10059", "description": 5},
            0,
            0,
            "error without a description",
        ),
        ({"err_code": None, "description": 5}, 0, 0, "error without a description"),
        ("it broke", 0, 0, "it broke"),
        (["x"], 0, 0, "['x']"),
    ],
)
def test_errors_of_any_shape(error, code, err_code, description):
    made = api_error(error)
    assert type(made) is ApiError
    assert (made.code, made.err_code, made.description) == (code, err_code, description)


@pytest.mark.rule("JSERR-3")
@pytest.mark.rule("D-JSERR-8")
@pytest.mark.parametrize(
    ("err_code", "description", "last_seq"),
    [
        (10071, "wrong last sequence: " + "9" * 5000, None),
        (10071, "wrong last sequence: \u00b2", None),
        (10071, "wrong last sequence: 0", 0),
        (10071, "wrong last sequence: 18446744073709551615", 2**64 - 1),
        (10164, "wrong last sequence", None),
        (10180, "min last sequence", None),
        (10071, "wrong last sequence: soon", None),
    ],
)
def test_wrong_last_sequence(err_code, description, last_seq):
    error = api_error({"code": 400, "err_code": err_code, "description": description})
    assert isinstance(error, WrongLastSequence)
    assert error.last_seq == last_seq


@pytest.mark.rule("JSERR-4")
@pytest.mark.parametrize(
    ("description", "full"),
    [
        ("maximum messages exceeded", True),
        ("maximum bytes exceeded", True),
        ("maximum messages per subject exceeded", True),
        ("no space left on device", False),
    ],
)
def test_store_failed(description, full):
    error = api_error({"code": 503, "err_code": 10077, "description": description})
    assert isinstance(error, StoreFailed)
    assert error.full is full


@pytest.mark.parametrize("cls", [ApiError, StreamNotFound, WrongLastSequence])
def test_api_errors_survive_pickling(cls):
    error = cls(400, 10071, "wrong last sequence: 7")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert (str(copy), copy.args, vars(copy)) == (str(error), error.args, vars(error))


def test_every_exception_has_a_docstring():
    for name, cls in vars(api_errors).items():
        if isinstance(cls, type) and issubclass(cls, NatsError):
            assert cls.__doc__, name
