from __future__ import annotations

import pytest

from natsproto.connection.effects import (
    Dial,
    Drop,
    Hangup,
    Poke,
    Publish,
    Resubscribe,
    Sign,
    StartTls,
    Unsubscribe,
    Wake,
)


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        (Dial("h", 4222, True), "Dial(host='h', port=4222, shuffle=True)"),
        (
            Dial("h", 80, True, "ws://h:80"),
            "Dial(host='h', port=80, shuffle=True, url='ws://h:80')",
        ),
        (StartTls("h"), "StartTls(hostname='h')"),
        (Sign(None), "Sign(challenge=None)"),
        (Hangup(), "Hangup()"),
        (
            Publish(b"s", b"d", b"r", None),
            "Publish(block=None, data=b'd', reply=b'r', subject=b's')",
        ),
        (Wake([]), "Wake(waitables=[])"),
        (Poke(None), "Poke(receiver=None)"),
        (Drop(), "Drop()"),
        (Resubscribe(), "Resubscribe()"),
        (Unsubscribe(), "Unsubscribe()"),
    ],
)
def test_effects_show_and_compare_their_fields(effect, text):
    assert repr(effect) == text
    assert effect == eval(text)
    assert effect != Dial("other", 1, False)
