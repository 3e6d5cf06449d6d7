from __future__ import annotations

from datetime import timedelta

import pytest

from natsproto.choice import KnownServer, choose_server
from natsproto.errors import InvalidValue


def servers():
    return [KnownServer("nats://%s:4222" % name, False, 0, None, name == "c") for name in "abc"]


GOOD = [  # the function's result, the choice
    (lambda known, info: None, None),
    (lambda known, info: known[1], (1, None)),
    (lambda known, info: known[2].url, (2, None)),
    (lambda known, info: (known[0], 5), (0, 5)),
    (lambda known, info: (known[0].url, timedelta(seconds=2)), (0, 2.0)),
    (lambda known, info: next(each for each in known if each.current), (2, None)),
    (lambda known, info: known.pop(), (2, None)),
    (lambda known, info: known.reverse() or known[0], (2, None)),
]


@pytest.mark.rule("POOL-16")
@pytest.mark.parametrize(("chooser", "chosen"), GOOD)
def test_a_choice(chooser, chosen):
    assert choose_server(chooser, servers(), None) == chosen


@pytest.mark.rule("POOL-16")
def test_the_function_gets_copies_and_the_info():
    found = []
    choose_server(lambda *args: found.append(args), servers(), None)
    assert found == [(servers(), None)]
    assert repr(found[0][0][0]).startswith("KnownServer(url='nats://a:4222', discovered=False, f")


def raises(known, info):
    raise KeyError("zone" * 100)


BAD = [  # the function's behavior, the error
    (raises, r"choose_server raised KeyError: 'zone.*\.\.\."),
    (lambda known, info: "nats://x", "choose_server returned a server .* pool: 'nats://x'"),
    (lambda known, info: 1, "choose_server returned a server that is not in the pool: 1"),
    (lambda known, info: [], r"choose_server returned a server that is not in the pool: \[\]"),
    (lambda known, info: known[0].failures, "choose_server returned a server .* pool: 0"),
    (lambda known, info: (known[0],), "choose_server returned neither a server nor a pair"),
    (lambda known, info: (known[0], -1), "delay of choose_server -1 is not a number of seconds"),
    (lambda known, info: (known[0], None), "delay of choose_server None is not a number of sec"),
    (lambda known, info: (None, 1), "choose_server returned a server .* pool: None"),
]


@pytest.mark.rule("POOL-17")
@pytest.mark.parametrize(("chooser", "text"), BAD)
def test_a_result_that_cannot_be_used(chooser, text):
    with pytest.raises(InvalidValue, match=text + r".* \(POOL-17\)$"):
        choose_server(chooser, servers(), None)
