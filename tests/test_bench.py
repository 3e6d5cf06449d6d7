"""The stored figures of the benchmarks: ratios, targets, and the pages made from them."""

from __future__ import annotations

import subprocess
from xml.etree import ElementTree

import pytest

from bench import figures
from bench.figures import ALLOWED, OURS, RESULTS, TARGETS, Fall, Ratio, Row, fallen, goals
from docs.generate import performance
from docs.generate.performance import BARS, CHART_ROWS, plain, span, wrap
from tests.core import ROOT

ASYNCIO = OURS[0]


def row(name="publish 16 B", **cpu):
    clients = {"nats-py": "base", ASYNCIO: "ours", "nats-core": "core"}
    return Row(
        {
            "name": name,
            "base": "nats-py",
            "clients": {who: {"cpu": cpu[key]} for who, key in clients.items() if key in cpu},
        }
    )


def test_the_page_and_the_chart_are_current():
    stale = [
        path.name
        for path, text in performance.render().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run python -m docs.generate.performance"


def test_every_stored_row_has_its_base_and_its_conditions():
    for data in figures.read(RESULTS)["rows"]:
        assert data["base"] in data["clients"], data["name"]
        assert data["date"]
        assert 0 < data["share"] <= 1
        assert len(data["load"]) == 2


def test_targets_and_the_chart_name_stored_rows():
    stored = figures.rows_of(figures.read(RESULTS))
    assert {name for name, *_ in TARGETS} <= set(stored)
    assert {name for pair in figures.SCALING for name in pair[:2]} <= set(stored)
    assert set(CHART_ROWS) <= set(stored)


def test_the_chart_has_a_bar_for_each_stored_client():
    stored = figures.rows_of(figures.read(RESULTS))
    root = ElementTree.parse(performance.CHART).getroot()
    bars = [
        (name, client)
        for name in CHART_ROWS
        for client, _ in BARS
        if stored[name].ratio(client) is not None
    ]
    polygons = list(root.iter("{http://www.w3.org/2000/svg}polygon"))
    assert len(polygons) == len(BARS) + len(bars)  # those of the legend come first


RATIOS = [  # case, ours, base, the ratio
    ("one round", [2.0], [8.0], Ratio(4.0, 4.0)),
    ("pairs of the same round", [2.0, 1.0, 4.0], [8.0, 8.0, 8.0], Ratio(4.0, 8.0)),
    ("a failed round", [None, 2.0], [9.0, 6.0], Ratio(3.0, 3.0)),
    ("no common round", [None, 2.0], [9.0, None], None),
]


@pytest.mark.parametrize(("case", "ours", "base", "ratio"), RATIOS)
def test_ratios(case, ours, base, ratio):
    assert row(ours=ours, base=base).ratio(ASYNCIO) == ratio


def test_a_client_without_figures_has_no_ratio():
    assert row(base=[1.0]).ratio(ASYNCIO) is None
    assert row(base=[1.0]).cpu(ASYNCIO) is None


FALLS = [  # case, ours and base now; stored are 1.0 and 10.0
    ("the same", [1.0], [10.0], False),
    ("at the limit", [1.0], [9.0], False),
    ("below it", [1.0], [8.9], True),
    ("by the median alone", [1.0, 2.0, 2.0], [10.0, 10.0, 10.0], False),
    ("by the minima alone", [1.0, 1.0, 1.0], [8.0, 10.0, 10.0], False),
    ("better", [0.5], [10.0], False),
]


@pytest.mark.parametrize(("case", "ours", "base", "fell"), FALLS)
def test_falls(case, ours, base, fell):
    stored = {"a": row("a", ours=[1.0], base=[10.0])}
    found = fallen(stored, {"a": row("a", ours=ours, base=base)}, [ASYNCIO])
    assert bool(found) is fell
    if fell:
        assert found == [Fall("a", ASYNCIO, 10.0, 8.9)]
    assert ALLOWED == 0.9


def test_rows_that_are_not_stored_cannot_fall():
    assert fallen({}, {"a": row("a", ours=[1.0], base=[1.0])}, [ASYNCIO]) == []


@pytest.mark.parametrize(("base", "met"), [(6.0, True), (5.9, False)])
def test_targets(base, met):
    found = goals({"publish 16 B": row(ours=[1.0], base=[base])})
    assert [(goal.row, goal.client, goal.met) for goal in found] == [("publish 16 B", ASYNCIO, met)]


@pytest.mark.parametrize(("many", "met"), [(2.5, True), (2.6, False)])
def test_targets_of_scaling(many, met):
    names = [("10,000 subscriptions", many), ("1 subscription", 1.0)]
    rows = {name: row(name, ours=[cpu], base=[1.0]) for name, cpu in names}
    assert [goal.met for goal in goals(rows)] == [met]


def test_a_client_ahead_of_ours_is_named():
    rows = {"a": row("a", ours=[2.0], base=[9.0], core=[1.0])}
    assert figures.ahead_of_ours(rows) == [("a", ASYNCIO, "nats-core")]


def test_texts():
    assert plain("1.09e+03 (983)") == "1090 (983)"
    assert (span([3]), span([2, 9])) == ("3", "2 to 9")
    assert max(map(len, wrap("word " * 100).splitlines())) <= 125


@pytest.mark.parametrize("target", ["bench", "bench-check", "bench-spark"])
def test_the_targets_need_no_environment(target):
    """They create their own, so that they work in a fresh clone."""
    run = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert [line.split()[1] for line in run.stdout.splitlines() if "python" in line] == [
        "bench/run.py"
    ]
