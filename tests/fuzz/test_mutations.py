from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from natsproto import Parser
from tests.fuzz.mutate import Mutator
from tests.fuzz.oracle import check_and_tell, check_block, check_input
from tests.wire.support import read

SEEDS = 20
MUTATIONS = 10_000
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
    check = check_block if path.name.startswith("fuzz_headers-") else check_input
    check(path.read_bytes())
