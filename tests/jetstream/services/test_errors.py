from __future__ import annotations

import pytest

from jetstream.errors import ServiceError
from jetstream.services import errors
from natsproto.errors import InvalidHeader
from natsproto.wire.frames import Msg
from natsproto.wire.headers import Headers


@pytest.mark.rule("SERVICE-20", "SERVICE-21")
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (None, []),
        ({"A": "b"}, [("A", "b")]),
        (Headers({"A": ["b", "c"]}), [("A", "b"), ("A", "c")]),
        ({"Nats-Service-Error": "mine"}, []),
    ],
)
def test_headers(headers, expected):
    made = errors.error_headers(400, "bad input", headers)
    assert made.items() == [
        *expected,
        ("Nats-Service-Error", "bad input"),
        ("Nats-Service-Error-Code", "400"),
    ]


def test_the_headers_of_the_caller_are_not_changed():
    given = Headers({"A": "b"})
    errors.error_headers(400, "bad", given)
    assert len(given) == 1


@pytest.mark.rule("D-SERVICE-6")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\r\nb", "a  b"),
        ("\ud800x", "x"),
        (" \n ", "error"),
        ("gr\u00fcn \U0001f600", "gr\u00fcn \U0001f600"),
    ],
)
def test_the_text_is_one_line(text, line):
    made = errors.error_headers(1, text)
    assert made["Nats-Service-Error"] == line
    assert made.encode()


def test_headers_that_cannot_be_sent():
    with pytest.raises(InvalidHeader):
        errors.error_headers(1, "x", {"a b": "c"})


@pytest.mark.rule("D-SERVICE-6")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("x"), "ValueError: x"),
        (ValueError(), "ValueError"),
        (ServiceError(404, "gone"), "404: gone"),
    ],
)
def test_describe(error, text):
    assert errors.describe(error) == text


def test_long_texts_are_cut():
    assert len(errors.describe(ValueError("x" * 10_000))) < 250


@pytest.mark.rule("D-SERVICE-6")
def test_as_service_error():
    known = ServiceError(404, "gone")
    assert errors.as_service_error(known) is known
    other = errors.as_service_error(KeyError("x"))
    assert (other.code, other.text) == (500, "KeyError: 'x'")


def answer(**headers):
    made = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    return Msg(b"s", 1, b"", b"data", made.encode())


@pytest.mark.rule("SERVICE-20", "SERVICE-21")
@pytest.mark.parametrize(
    ("msg", "code", "text"),
    [
        (answer(Nats_Service_Error="bad", Nats_Service_Error_Code="400"), 400, "bad"),
        (answer(Nats_Service_Error="bad"), 0, "bad"),
        (answer(Nats_Service_Error_Code="400"), 400, "error"),
        (answer(Nats_Service_Error_Code="4x"), 0, "error"),
        (answer(Nats_Service_Error_Code="-4"), 0, "error"),
        (answer(Nats_Service_Error_Code="4" * 19 + "x"), 0, "error"),
    ],
)
def test_errors_are_read(msg, code, text):
    error = errors.service_error(msg)
    assert (error.code, error.text, error.data) == (code, text, b"data")
    assert error.headers == msg.headers


@pytest.mark.parametrize(
    "msg", [Msg(b"s", 1), answer(A="b"), Msg(b"s", 1, b"", b"", b"NATS/1.0\r\nbad\r\n\r\n")]
)
def test_answers_that_are_not_errors(msg):
    assert errors.service_error(msg) is None
