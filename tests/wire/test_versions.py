from __future__ import annotations

import pytest

from natsproto.wire.frames import Info
from natsproto.wire.versions import has_version, read_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.12.0", (2, 12, 0)),
        ("2.12.0-beta.1", (2, 12, 0)),
        ("2.12", (2, 12)),
        ("2.x", (2,)),
        ("dev", ()),
        ("", ()),
        ("2." + "9" * 5000, (2,)),
        ("2.\u00b2", (2,)),
    ],
)
def test_versions(text, version):
    assert read_version(text) == version


@pytest.mark.parametrize(
    ("version", "since", "known"),
    [
        ("2.10.0", (2, 10), True),
        ("2.9.25", (2, 10), False),
        ("proxy", (2, 10), True),
    ],
)
def test_whether_a_server_is_new_enough(version, since, known):
    assert has_version(Info({"version": version}), since) is known
    assert has_version(None, since)
