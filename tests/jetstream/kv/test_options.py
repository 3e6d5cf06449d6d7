"""The target and the options of a watch."""

from __future__ import annotations

import pytest

from jetstream.kv.options import WatchOptions, WatchTarget
from natsproto.errors import InvalidName, InvalidValue, LocalError

FLAGS = ("include_history", "updates_only", "ignore_deletes", "meta_only")
POLICIES = [
    # options, policy, where it starts
    ({}, "last_per_subject", None),
    ({"include_history": True}, "all", None),
    ({"updates_only": True}, "new", None),
    ({"resume_from_revision": 7}, "by_start_sequence", 7),
]


@pytest.mark.rule("KV-33")
@pytest.mark.parametrize(("given", "policy", "start"), POLICIES)
def test_policies(given, policy, start):
    options = WatchOptions("a", **given)
    assert (options.policy, options.start, options.filters) == (policy, start, ["a"])


@pytest.mark.rule("KV-33")
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"include_history": True, "updates_only": True}, InvalidValue),
        ({"include_history": True, "resume_from_revision": 7}, InvalidValue),
        ({"updates_only": True, "resume_from_revision": 7}, InvalidValue),
        *(({"resume_from_revision": wrong}, InvalidValue) for wrong in (0, -1, "7", 2**64)),
        *(({name: "yes"}, InvalidValue) for name in FLAGS),
        ({"keys": "a..b"}, InvalidName),
        ({"keys": []}, InvalidValue),
    ],
)
def test_wrong_options(wrong, error):
    with pytest.raises(error) as caught:
        WatchOptions(**wrong)
    assert isinstance(caught.value, LocalError)


@pytest.mark.parametrize(
    ("given", "history", "whole"), [({}, 1, False), ({"history": 5, "whole": True}, 5, True)]
)
def test_a_target(given, history, whole):
    api = object()
    target = WatchTarget(api, "KV_b", "b", "$KV.b.", **given)
    assert (target.api, target.stream, target.bucket, target.prefix) == (api, "KV_b", "b", "$KV.b.")
    assert (target.history, target.whole) == (history, whole)
