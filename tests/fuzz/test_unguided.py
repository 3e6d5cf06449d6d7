"""Fuzzing without guidance: its mutations, and what it does with an input that fails."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from tests.fuzz import run, unguided
from tests.fuzz.answers import CHECKS, check_services
from tests.fuzz.samples import samples
from tests.fuzz.unguided import HARNESSES, Input, Mutations

SAMPLES = samples()


def test_the_same_seed_produces_the_same_mutations():
    corpus = SAMPLES["api"]
    one, two, other = (list(islice(Mutations(seed, corpus), 100)) for seed in (7, 7, 8))
    assert one == two
    assert one != other


def test_the_places_and_the_values_of_an_input():
    found = Input(b'{"a":-17,\r\nb}')
    cuts = zip(found.places, found.places[1:])
    tokens = [found.data[start:end] for start, end in cuts]
    assert tokens == [b"{", b'"a"', b":", b"-", b"17", b",", b"\r\n", b"b", b"}"]
    assert [tokens[i] for i in found.values] == [b'"a"', b"17", b"b"]
    assert list(found.every) == list(range(len(found.data) + 1))
    assert (Input(b"").places, Input(b"").values) == ([0], [])


def test_a_mutation_replaces_one_part(monkeypatch):
    monkeypatch.setattr(unguided, "MOST_PARTS", 1)
    whole = b"".join(b"%04d " % number for number in range(1000, 1040))
    for data in islice(Mutations(1, [whole]), 2_000):
        start = common(data, whole)
        end = common(data[start:][::-1], whole[start:][::-1])
        assert len(whole) - start - end <= 20  # eight tokens: four numbers and four spaces


def common(one, other):
    """Return how many bytes at the beginning are the same."""
    return next(
        (i for i, pair in enumerate(zip(one, other)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def test_the_mutations_are_worth_their_time():
    """Few occur twice, and many are JSON, although with other values."""
    inputs = list(islice(Mutations(1, SAMPLES["api"]), 5_000))
    assert len(set(inputs)) > 4_000
    assert 0.2 < sum(map(is_object, inputs)) / len(inputs) < 0.5


def is_object(data):
    try:
        return isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        return False


@pytest.mark.parametrize("name", HARNESSES)
def test_every_harness_runs(name, tmp_path, monkeypatch):
    run.write_corpus(tmp_path)
    monkeypatch.setattr("sys.argv", ["unguided", name, str(tmp_path / name), "20000", "1"])
    monkeypatch.setattr(unguided.resource, "setrlimit", lambda *_: None)  # it is for a process
    monkeypatch.setattr(unguided, "FOUND", tmp_path)
    assert unguided.main() == 0


def test_an_input_that_fails_is_kept(tmp_path, monkeypatch, capsys):
    def check(data):
        assert b"x" not in data

    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "0").write_bytes(b"a b c")
    monkeypatch.setitem(unguided.HARNESSES, "api", check)
    monkeypatch.setattr(unguided.resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr(unguided, "FOUND", tmp_path)
    monkeypatch.setattr("sys.argv", ["unguided", "api", str(folder), "100000", "5"])
    assert unguided.main() == 1
    [path] = tmp_path.glob("fuzz_api-*")
    assert b"x" in path.read_bytes()
    printed = capsys.readouterr()
    assert f"seed 5, {path}: " in printed.out
    assert "AssertionError" in printed.err


def test_an_execution_that_does_not_end_fails(monkeypatch, capsys):
    def check(data):
        while True:
            pass

    monkeypatch.setitem(unguided.HARNESSES, "api", check)
    monkeypatch.setattr(unguided, "LONGEST", 0.05)
    assert unguided.run("api", iter([b"a", b"b"]), 10) == [b"a"]
    assert "TimeoutError" in capsys.readouterr().err


def test_several_requests_at_once():
    """A service answers each of them, except an error that cannot be sent."""
    request = SAMPLES["service"][0]
    check_services([request, request, b"_INBOX.y", b"a..b\n\0{}", b""])
    CHECKS["service"](request)


def test_a_request_without_an_answer_is_noticed(monkeypatch):
    check_services([b"_INBOX.x"])
    stage = unguided.check_services.__globals__["_service"][0].stage
    settle = stage.settle

    def lose():
        settle()
        stage.pubs.pop()

    monkeypatch.setattr(stage, "settle", lose)
    with pytest.raises(AssertionError, match="each request is answered"):
        check_services([b"_INBOX.x", b"_INBOX.y"])


def test_runs_add_up(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "STEP", 1_000)
    monkeypatch.setenv("FUZZ_SECONDS", "0")
    monkeypatch.setenv("FUZZ_JOBS", "2")
    for executions in (2_500, 2_000, 3_000):
        monkeypatch.setenv("FUZZ_EXECUTIONS", str(executions))
        assert run.run(["headers", "ack"], tmp_path) == 0
    counts = json.loads((tmp_path / "executed.json").read_text())["counts"]
    assert counts == {"headers": 3_000, "ack": 3_000}
    assert "ack: 3,000 executions, nothing found" in capsys.readouterr().out


def test_a_run_without_guidance(tmp_path, monkeypatch, capsys):
    """It does not depend on atheris, which takes a process that has to wait for one that hangs."""
    monkeypatch.setattr(run, "SMALL_STEP", 500)
    monkeypatch.delattr(run.Fuzzer, "guide")
    monkeypatch.setenv("FUZZ_GUIDED", "0")
    monkeypatch.setenv("FUZZ_SECONDS", "0.001")
    assert run.run(["headers", "ack"], tmp_path) == 0
    assert "ack: 500 executions, nothing found" in capsys.readouterr().out
