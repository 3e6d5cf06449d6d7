from __future__ import annotations

import pytest

from jetstream.schema.stream_config import StreamConfig
from jetstream.schema.stream_rules import check_stream
from natsproto.errors import InvalidName, InvalidSubject, InvalidValue, LocalError
from tests.configs import REFUSED_STREAMS, TAKEN_STREAMS, refused


@pytest.mark.parametrize(("rule", "config"), refused(REFUSED_STREAMS))
def test_refused(rule, config):
    with pytest.raises(LocalError) as error:
        check_stream(StreamConfig(**{"name": "S", **config}), new=True)
    assert error.value.rule == rule


@pytest.mark.parametrize("config", TAKEN_STREAMS)
def test_taken(config):
    check_stream(StreamConfig(**{"name": "S", **config}), new=True)


TEXTS = [  # the error, its text, the config
    (InvalidName, "stream 'é' contains 'é', which is not printable ASCII (SUBJ-7)", {"name": "é"}),
    (
        InvalidSubject,
        "subject of stream 'S' 'a..b' has an empty token (SUBJ-1)",
        {"subjects": ["a..b"]},
    ),
    (
        InvalidValue,
        "StreamConfig with duplicate_window=2.0, max_age=1.0:"
        " ids cannot be kept longer than messages (STREAM-7)",
        {"duplicate_window": 2, "max_age": 1},
    ),
    (
        InvalidValue,
        "StreamConfig with mirror=StreamSource(name='O') and subjects=['a']:"
        " a mirror copies its origin (STREAM-14)",
        {"mirror": {"name": "O"}, "subjects": ["a"]},
    ),
    (
        InvalidValue,
        "StreamConfig.description has 4097 bytes, more than 4096 (STREAM-3)",
        {"description": "x" * 4097},
    ),
    (
        InvalidValue,
        "StreamConfig.metadata has 131073 bytes, more than 131072 (STREAM-4)",
        {"metadata": {"k": "x" * 131072}},
    ),
]


@pytest.mark.parametrize(("error", "text", "config"), TEXTS)
def test_errors_state_the_problem(error, text, config):
    with pytest.raises(error) as caught:
        check_stream(StreamConfig(**{"name": "S", **config}), new=True)
    assert str(caught.value) == text


def test_a_stream_that_exists_may_have_the_name_of_a_laxer_client():
    check_stream(StreamConfig(name="é"), new=False)
    with pytest.raises(InvalidName) as error:
        check_stream(StreamConfig(name="a.b"), new=False)
    assert error.value.rule == "SUBJ-8"
