from __future__ import annotations

from natsproto import paths


def test_the_public_names():
    assert all(hasattr(paths, name) for name in paths.__all__)
    assert issubclass(paths.UnknownStep, paths.Step)
