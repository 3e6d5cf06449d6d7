from __future__ import annotations

from jetstream.tools import explain
from natsproto.wire.frames import Ping


def test_the_names_of_the_room():
    assert explain.__all__ == ["Explainer", "Note", "wire_text"]
    note = explain.Explainer().sent(Ping())
    assert isinstance(note, explain.Note)
    assert explain.wire_text(Ping()) == "PING"
