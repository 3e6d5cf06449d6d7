"""The checker of linearizability finds what is wrong, and nothing else."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.jepsen.checker import REFUSED, Appends, Operation, Revisions, Totals, check


def write(last, result, invoked, returned):
    return Operation("write", last, result, invoked, returned)


def add(by, result, invoked, returned):
    return Operation("add", by, result, invoked, returned)


def append(first, last, invoked, returned):
    return Operation("append", None, (first, last), invoked, returned)


GOOD = {
    "nothing": (Revisions(), []),
    "one after the other": (Revisions(), [write(0, 1, 0, 1), write(1, 2, 2, 3)]),
    "concurrent, in the other order": (Revisions(), [write(1, 2, 0, 5), write(0, 1, 1, 4)]),
    "refused after a write": (Revisions(), [write(0, 3, 0, 1), write(0, REFUSED, 2, 3)]),
    "refused by a concurrent write": (Revisions(), [write(0, REFUSED, 0, 3), write(0, 3, 2, 5)]),
    "refused by a write without a return": (
        Revisions(),
        [write(0, 3, 0, None), write(0, REFUSED, 1, 2)],
    ),
    "a write without a return takes effect late": (
        Revisions(),
        [write(None, 9, 0, None), write(0, 4, 1, 2), write(9, 11, 5, 6)],
    ),
    "a write without a return that nobody saw": (
        Revisions(),
        [write(7, 8, 0, None), write(0, 4, 1, 2)],
    ),
    "the same time is concurrent": (Revisions(), [write(1, 2, 0, 1), write(0, 1, 1, 2)]),
    "a counter": (Totals(), [add(1, 1, 0, 1), add(2, 3, 2, 3), add(0, 3, 4, 5)]),
    "concurrent increments": (Totals(), [add(1, 4, 0, 9), add(2, 3, 1, 8), add(1, 1, 2, 7)]),
    "an increment in doubt that took effect": (Totals(), [add(5, None, 0, None), add(1, 6, 1, 2)]),
    "an increment in doubt that did not": (Totals(), [add(5, None, 0, None), add(1, 1, 1, 2)]),
    "an increment in doubt that took effect late": (
        Totals(),
        [add(5, None, 0, None), add(1, 1, 1, 2), add(1, 7, 3, 4)],
    ),
    "a log": (Appends(), [append(1, 3, 0, 1), append(6, 6, 2, 3)]),
    "a log, concurrent": (Appends(), [append(4, 6, 0, 3), append(1, 3, 0, 3)]),
}
BAD = {
    "expected what was replaced": (Revisions(), [write(0, 1, 0, 1), write(0, 2, 2, 3)]),
    "two writes expected the same": (
        Revisions(),
        [write(0, 1, 0, 1), write(1, 2, 2, 5), write(1, 3, 2, 5)],
    ),
    "refused for no reason": (Revisions(), [write(0, 3, 0, 1), write(3, REFUSED, 2, 3)]),
    "a later write has an earlier revision": (
        Revisions(),
        [write(None, 5, 0, 1), write(None, 4, 2, 3)],
    ),
    "a lost write": (Revisions(), [write(None, 5, 0, 1), write(0, 6, 2, 3)]),
    "a write took effect before it was invoked": (
        Revisions(),
        [write(5, 6, 0, 1), write(None, 5, 2, 3)],
    ),
    "refused by a write that came later": (
        Revisions(),
        [write(0, REFUSED, 0, 1), write(0, 3, 2, 3)],
    ),
    "a lost increment": (Totals(), [add(1, 1, 0, 1), add(1, 1, 2, 3)]),
    "an increment that counted twice": (Totals(), [add(1, 1, 0, 1), add(1, 3, 2, 3)]),
    "a total that was never reached": (Totals(), [add(5, None, 0, None), add(1, 3, 1, 2)]),
    "an increment in doubt that came and went": (
        Totals(),
        [add(5, None, 0, None), add(1, 6, 1, 2), add(1, 2, 3, 4)],
    ),
    "appends that overlap": (Appends(), [append(1, 3, 0, 5), append(2, 4, 0, 5)]),
    "appends in the wrong order": (Appends(), [append(4, 6, 0, 1), append(1, 3, 2, 3)]),
}


@pytest.mark.parametrize("case", GOOD)
def test_linearizable(case):
    model, operations = GOOD[case]
    for each in itertools.permutations(operations):
        assert check(each, model) is None


@pytest.mark.parametrize("case", BAD)
def test_not_linearizable(case):
    model, operations = BAD[case]
    for each in itertools.permutations(operations):
        stuck = check(each, model)
        assert stuck is not None
        assert sorted([*stuck.order, *stuck.left], key=repr) == sorted(operations, key=repr)


def test_a_report():
    model, operations = BAD["a lost write"]
    assert str(check(operations, model)).splitlines() == [
        "no order explains these results; the longest one that was found:",
        "  [0.000000 1.000000] write(None) -> 5",
        "cannot continue with:",
        "  [2.000000 3.000000] write(0) -> 6",
    ]


def explain(operations, model):
    """Return whether there is an order, found by trying all of them."""
    for chosen in itertools.product([True, False], repeat=len(operations)):
        some = [one for one, yes in zip(operations, chosen, strict=True) if yes]
        if any(one.returned is not None for one in operations if one not in some):
            continue
        for order in itertools.permutations(some):
            state = model.initial
            for place, one in enumerate(order):
                late = any(
                    other.returned is not None and other.returned < one.invoked
                    for other in order[place + 1 :]
                )
                state = None if late else model.step(state, one)
                if state is None:
                    break
            else:
                return True
    return False


def test_random_histories_agree_with_trying_all_orders():
    rng = random.Random(18)
    verdicts = []
    for _ in range(400):
        operations = []
        for _ in range(rng.randrange(1, 6)):
            invoked = rng.randrange(8)
            in_doubt = rng.random() < 0.2
            returned = None if in_doubt else invoked + rng.randrange(1, 5)
            result = None if in_doubt else rng.randrange(1, 6)
            operations.append(add(rng.randrange(1, 3), result, invoked, returned))
        found = check(operations, Totals()) is None
        assert found == explain(operations, Totals()), operations
        verdicts.append(found)
    assert 40 < sum(verdicts) < 360


def run(rng, count):
    """Return a history of compare-and-set on one key that a correct store produced."""
    operations = []
    revision = 0
    for clock in range(count):
        # It takes effect at `clock`, somewhere between its invocation and its return.
        last = rng.choice([None, revision, revision, revision + 1])
        if last in (None, revision):
            revision += rng.randrange(1, 4)
            result = revision
        else:
            result = REFUSED
        operations.append(write(last, result, clock - 3 * rng.random(), clock + 3 * rng.random()))
    return operations


def test_histories_of_a_correct_store_pass_and_mutated_ones_do_not():
    found = 0
    for seed in range(60):
        rng = random.Random(seed)
        operations = run(rng, 40)
        rng.shuffle(operations)
        assert check(operations, Revisions()) is None
        # One write is lost: no other operation can have seen its revision.
        stored = [each for each in operations if each.result != REFUSED]
        seen = {each.argument for each in stored}
        victim = rng.choice([each for each in stored if each.result in seen])
        broken = [each for each in operations if each is not victim]
        assert check(broken, Revisions()) is not None
        # Two writes exchange their results.
        one, other = rng.sample(stored, 2)
        swapped = [
            each._replace(result=other.result)
            if each is one
            else each._replace(result=one.result)
            if each is other
            else each
            for each in operations
        ]
        found += check(swapped, Revisions()) is not None
    assert found > 50


def test_many_operations_in_doubt_take_no_exponential_time():
    pending = [add(1, None, 0, None) for _ in range(40)]
    done = [add(1, number, number, number + 0.5) for number in range(1, 200)]
    assert check([*pending, *done], Totals()) is None


def test_many_refused_writes_take_no_exponential_time():
    """Each of them is possible at once, but the history is wrong: no order must be tried twice."""
    refused = [write(0, REFUSED, 2, 9) for _ in range(40)]
    wrong = [write(None, 5, 0, 1), write(0, 6, 3, 4)]
    stuck = check([*wrong, *refused], Revisions())
    assert stuck is not None
    assert len(stuck.order) == 41


@pytest.mark.parametrize("wrong", [False, True])
def test_many_concurrent_appends_with_a_known_order_take_no_exponential_time(wrong):
    rng = random.Random(3)
    every = [append(number, number, rng.random(), 9) for number in range(1, 200)]
    if wrong:
        every.append(append(100.5, 100.5, 0, 0.0))  # before all others
    rng.shuffle(every)
    firsts = sorted(each.result[0] for each in every)
    order = dict(zip([0, *firsts], firsts))
    assert (check(every, Appends(order)) is not None) == wrong


@pytest.mark.parametrize(
    ("model", "operations", "good"),
    [
        (Revisions({0: 1, 1: 3}), [write(None, 3, 0, 2), write(None, 1, 1, 3)], True),
        (Revisions({0: 1, 1: 3}), [write(None, 3, 0, 1), write(None, 1, 2, 3)], False),
        (Revisions({0: 1, 1: 2, 2: 3}), [write(None, 1, 0, 1), write(None, 3, 2, 3)], False),
        (Totals({0: 2, 2: 5}), [add(3, 5, 0, 2), add(2, 2, 1, 3)], True),
        (Totals({0: 2, 2: 5}), [add(3, 3, 0, 2), add(2, 5, 1, 3)], False),
    ],
)
def test_the_order_that_the_stream_tells(model, operations, good):
    assert (check(operations, model) is None) is good
