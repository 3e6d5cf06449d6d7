from __future__ import annotations

import pytest

from natsproto.connection.encoded import reply_of, size_of, subject_of
from natsproto.wire import encode


@pytest.mark.parametrize(("headers", "block"), [(None, 0), ({"K": "v"}, 18)])
@pytest.mark.parametrize("reply", ["", "r"])
@pytest.mark.parametrize("data", [b"", b"x", b"PUB a b 3\r\nx y\r\n"])
def test_publishes_are_read_back(headers, block, reply, data):
    frame = encode.pub("a.b", data, reply=reply, headers=headers)
    assert (subject_of(frame), reply_of(frame)) == (b"a.b", reply.encode())
    assert size_of(frame) == block + len(data)
