from __future__ import annotations

import importlib
import sys
from itertools import islice
from pathlib import Path

import pytest

from natsproto import Parser
from tests.fuzz.answers import CHECKS
from tests.fuzz.mutate import Inputs, Mutator
from tests.fuzz.oracle import check_and_tell, check_input
from tests.fuzz.samples import samples
from tests.fuzz.unguided import HARNESSES
from tests.sim.test_mutants import Mutation
from tests.wire.support import read

SEEDS = 20
MUTATIONS = 10_000
ANSWERS = {"info": 1_500, "service": 4_000}
FRESH = ("natsproto", "jetstream", "tests.fuzz", "tests.jetstream", "tests.connection")
SAMPLES = samples()
FOUND = sorted((Path(__file__).parent / "found").iterdir())


@pytest.mark.rule("D-WIRE-16", "D-WIRE-17")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_mutated_transcripts(seed):
    """200,000 mutations; an input that fails is added to `found` for good."""
    for peer, stream, cuts in islice(Mutator(seed), MUTATIONS):
        check_and_tell(peer, stream, cuts)


def test_the_same_seed_produces_the_same_mutations():
    one, two, other = (list(islice(Mutator(seed), 100)) for seed in (7, 7, 8))
    assert one == two
    assert one != other


def test_the_mutations_are_worth_their_time():
    """Most mutations contain frames, and many end in garbage of various kinds."""
    results = [read([stream], Parser(peer=peer)) for peer, stream, _ in islice(Mutator(0), 2000)]
    assert 0.3 < sum(result.error is not None for result in results) / len(results) < 0.8
    assert sum(bool(result.frames) for result in results) / len(results) > 0.6
    assert len({result.error[0] for result in results if result.error}) > 50


@pytest.mark.rule("D-WIRE-16", "D-WIRE-17")
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_inputs_found_earlier(path):
    harness = path.name.partition("-")[0].removeprefix("fuzz_")
    HARNESSES.get(harness, check_input)(path.read_bytes())


@pytest.mark.parametrize("name", CHECKS)
def test_samples_are_valid_inputs(name):
    assert len(SAMPLES[name]) >= 2
    for data in SAMPLES[name]:
        CHECKS[name](data)


@pytest.mark.parametrize("name", CHECKS)
def test_mutated_answers(name):
    run(CHECKS[name], name)


def run(check, name):
    for data in islice(Inputs(0, SAMPLES[name]), ANSWERS.get(name, 8_000)):
        try:
            check(data)
        except Exception as error:  # noqa: PERF203 - to show the input
            raise AssertionError(f"{name}: {data!r}") from error


MISTAKES = [  # harness, module, its text, another one
    ("api", "api.stored", "not isinstance(seq, int)", "False"),
    ("api", "api.client", "except (ValueError, RuntimeError):", "except ValueError:"),
    ("ack", "api.metadata", 'reply.rsplit(b".", 3)[1]', 'reply.rsplit(b".", 4)[1]'),
    ("ack", "ordered.cursor", "self.start = start\n        self.cons", "self.cons"),
    ("advisory", "advisories.kinds", " if isinstance(name, str) else Advisory", ""),
    ("stored", "objects.info", "if not info.name:", "if False:"),
    ("stored", "api.stored", "except InvalidValue as error:", "except KeyError as error:"),
    ("service", "services.responses", "read_object(data)", '__import__("json").loads(data)'),
    ("info", "natsproto.wire.frames", 'value if isinstance(value, str) else ""', "value"),
]


@pytest.mark.parametrize(("name", "module", "old", "new"), MISTAKES)
def test_every_harness_can_fail(name, module, old, new):
    before = {key: each for key, each in sys.modules.items() if key.startswith(FRESH)}
    mutation = Mutation(module, old, new)
    sys.meta_path.insert(0, mutation)
    for key in before:
        del sys.modules[key]
    try:
        check = importlib.import_module("tests.fuzz.answers").CHECKS[name]
        with pytest.raises(AssertionError):
            run(check, name)
    finally:
        sys.meta_path.remove(mutation)
        for key in [key for key in sys.modules if key.startswith(FRESH)]:
            del sys.modules[key]
        sys.modules.update(before)
