from __future__ import annotations

import json

import pytest

from jetstream.errors import ApiError, InvalidResponse, WrongLastSequence
from jetstream.publish.request import AckReader, make_ack, read_ack
from jetstream.schema.info import PubAck


@pytest.mark.rule("PUB-1", "PUB-8")
@pytest.mark.parametrize(
    ("data", "ack"),
    [
        (b'{"stream":"PB","seq":1}', PubAck(stream="PB", seq=1)),
        (b'{"stream":"PB","seq":1,"duplicate": true}', PubAck(stream="PB", seq=1, duplicate=True)),
        (b'{"stream":"S","domain":"hub","seq":2}', PubAck(stream="S", seq=2, domain="hub")),
        (b'{"stream":"C","seq":1,"val":"5"}', PubAck(stream="C", seq=1, val="5")),
        (
            b'{"stream":"S","seq":9,"batch":"b","count":3}',
            PubAck(stream="S", seq=9, batch="b", count=3),
        ),
        (b'{"seq":18446744073709551615,"stream":"S"}', PubAck(stream="S", seq=2**64 - 1)),
    ],
)
def test_acknowledgments(data, ack):
    assert read_ack(data) == ack


@pytest.mark.rule("PUB-1")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"+OK",
        b"-ERR 'no'",
        b"{}",
        b"[]",
        b"7",
        b'{"seq":1}',
        b'{"stream":"","seq":1}',
        b'{"stream":7,"seq":1}',
        b'{"stream":"S","seq":"1"}',
        b'{"stream":"S","seq":1',
        b"\xff",
    ],
)
def test_answers_that_are_not_acknowledgments(data):
    for read in (read_ack, AckReader().read):
        with pytest.raises(InvalidResponse):
            read(data)


@pytest.mark.rule("PUB-2")
def test_refusals():
    error = b'{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 1"}'
    for read in (read_ack, AckReader().read):
        with pytest.raises(WrongLastSequence) as caught:
            read(error + b',"stream":"PB","seq":0}')
        assert caught.value.last_seq == 1


# What a reader is given in a row, after b'{"stream":"S","seq":41}'; and how many of them it knew by
# their bytes.
ROWS = [
    ([b'{"stream":"S","seq":42}', b'{"stream":"S","seq":9999999999999999999}'], 2),
    ([b'{"stream":"S","seq":18446744073709551615}'], 0),
    ([b'{"stream":"S","seq":0}'], 0),
    ([b'{"stream":"S","seq":42}', b'{"stream":"T","seq":1}', b'{"stream":"T","seq":2}'], 2),
    ([b'{"stream":"T","seq":1}', b'{"stream":"S","seq":42}'], 0),
    ([b'{"stream":"S","seq":42,"duplicate": true}', b'{"stream":"S","seq":43}'], 1),
    ([b'{"stream":"S","domain":"d","seq":42}', b'{"stream":"S","domain":"d","seq":43}'], 1),
    ([b'{"new":{"a":[1]},"stream":"S","seq":42}', b'{"new":{"a":[1]},"stream":"S","seq":43}'], 1),
    ([b'{"stream":"S:\\"","seq":1}', b'{"stream":"S:\\"","seq":2}'], 1),
    ([b'{"seq":7,"stream":"S"}', b'{"seq":8,"stream":"S"}'], 0),
    ([b'{"stream":"S","val":"\\"seq:","count":5}', b'{"stream":"S","val":"\\"seq:","count":6}'], 0),
    ([b'{"stream":"S","n":{"seq":5}}', b'{"stream":"S","n":{"seq":6}}'], 0),
    ([b'{"stream":"S","seq": 42}'], 0),
    ([b'{"stream":"S","seq":42} '], 0),
    ([b' {"stream":"S","seq":42}'], 0),
    ([b'{"stream":"S","seq":42,"seq":43}', b'{"stream":"S","seq":42,"seq":44}'], 1),
]  # fmt: skip


@pytest.mark.rule("D-PUB-19")
@pytest.mark.parametrize(("row", "known"), ROWS)
def test_fast_path_and_json_agree(row, known):
    reader = AckReader()
    reader.read(b'{"stream":"S","seq":41}')
    answers = [reader.read(data) for data in row]
    for data, answer in zip(row, answers):
        assert make_ack(answer).to_json() == PubAck.from_json(json.loads(data)).to_json()
    assert sum(1 for answer in answers if answer[1]) == known


@pytest.mark.rule("D-PUB-19")
@pytest.mark.parametrize(
    "data",
    [
        b'{"stream":"S","seq":007}',
        b'{"stream":"S","seq":}',
        b'{"stream":"S","seq":4 2}',
        b'{"stream":"S","seq":42]',
        b'{"stream":"S","seq":-1x}',
        b'{"stream":"S","seq":42',
        b'{"stream":"S","seq":',
        '{"stream":"S","seq":٤٢}'.encode(),
    ],
)
def test_fast_path_rejects_invalid_json(data):
    reader = AckReader()
    reader.read(b'{"stream":"S","seq":41}')
    with pytest.raises(InvalidResponse):
        reader.read(data)
    assert make_ack(reader.read(b'{"stream":"S","seq":42}')).seq == 42


@pytest.mark.rule("D-PUB-19")
def test_an_error_after_the_same_beginning_is_an_error():
    reader = AckReader()
    reader.read(b'{"stream":"S","seq":41}')
    with pytest.raises(ApiError):
        reader.read(b'{"stream":"S","seq":42,"error":{"code":1,"err_code":2,"description":"x"}}')


@pytest.mark.rule("D-PUB-19")
def test_two_acknowledgments_share_nothing():
    reader = AckReader()
    first = make_ack(reader.read(b'{"stream":"S","seq":41}'))
    second = make_ack(reader.read(b'{"stream":"S","seq":42}'))
    second.stream = "other"
    assert (first.stream, first.seq, second.seq) == ("S", 41, 42)
    first.stream = "another"
    assert make_ack(reader.read(b'{"stream":"S","seq":43}')) == PubAck(stream="S", seq=43)
