from __future__ import annotations

import pytest

from jetstream import kv

NAMES = [
    "AesGcmCodec",
    "Base64Codec",
    "InitialEntries",
    "KeyCodec",
    "KeyLister",
    "KeyValue",
    "KeyValueConfig",
    "KeyValueEntry",
    "KeyValueStatus",
    "KeyWatcher",
    "PathCodec",
    "ValueCodec",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_names_that_programs_use(name):
    assert getattr(kv, name).__name__ == name


def test_dir_has_them():
    assert dir(kv) == NAMES
