from __future__ import annotations

import natsproto
from natsproto.version import VERSION


def test_there_is_one_version():
    assert natsproto.__version__ == VERSION
    assert len(VERSION.split(".")) == 3
