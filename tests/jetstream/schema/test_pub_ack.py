from __future__ import annotations

import pytest

from jetstream.errors import InvalidResponse
from jetstream.schema.pub_ack import PubAck

ACKS = [
    ({"stream": "S", "seq": 1}, PubAck(stream="S", seq=1)),
    (
        {"stream": "S", "seq": 18446744073709551615, "duplicate": True, "domain": "hub"},
        PubAck(stream="S", seq=2**64 - 1, duplicate=True, domain="hub"),
    ),
    ({"stream": "S", "seq": 4, "val": "-12"}, PubAck(stream="S", seq=4, val="-12")),
    (
        {"stream": "S", "seq": 9, "batch": "b", "count": 3},
        PubAck(stream="S", seq=9, batch="b", count=3),
    ),
]


@pytest.mark.rule("JSAPI-8")
@pytest.mark.parametrize(("raw", "ack"), ACKS)
def test_acks(raw, ack):
    assert PubAck.from_json(raw) == ack
    assert ack.to_json() == raw


@pytest.mark.rule("JSAPI-6")
def test_an_ack_that_is_none():
    with pytest.raises(InvalidResponse, match=r"PubAck\.seq: '1' is not a whole number"):
        PubAck.from_json({"stream": "S", "seq": "1"})
