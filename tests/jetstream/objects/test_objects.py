from __future__ import annotations

import pytest

from jetstream import objects

NAMES = [
    "InitialObjects",
    "ObjectInfo",
    "ObjectLink",
    "ObjectMeta",
    "ObjectMetaOptions",
    "ObjectReader",
    "ObjectStore",
    "ObjectStoreConfig",
    "ObjectStoreStatus",
    "ObjectWatcher",
]


@pytest.mark.parametrize("name", NAMES)
def test_the_names_that_programs_use(name):
    assert getattr(objects, name).__name__ == name


def test_dir_has_them():
    assert dir(objects) == NAMES
