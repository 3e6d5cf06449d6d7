from __future__ import annotations

import pytest

from jetstream.api.listing import Listing, read_missing, read_offline
from jetstream.errors import InvalidResponse


@pytest.mark.rule("CALL-4")
def test_a_listing_is_a_list_with_missing_names():
    listing = Listing(["a", "b"])
    assert (listing, listing.missing, listing.offline) == (["a", "b"], [], {})
    listing.missing.append("c")
    listing.offline["d"] = "why"
    other = listing.like([1, 2])
    assert (other, other.missing, other.offline) == ([1, 2], ["c"], {"d": "why"})


@pytest.mark.rule("CALL-4")
@pytest.mark.parametrize(
    ("reply", "missing", "offline"),
    [
        ({}, [], {}),
        ({"missing": None, "offline": None}, [], {}),
        ({"missing": ["a"], "offline": {"b": "c"}}, ["a"], {"b": "c"}),
    ],
)
def test_names_that_pages_lack(reply, missing, offline):
    assert read_missing(reply) == missing
    assert read_offline(reply) == offline


@pytest.mark.parametrize("missing", ["a", 7, {"a": 1}, [1], [None]])
def test_invalid_names(missing):
    with pytest.raises(InvalidResponse):
        read_missing({"missing": missing})


@pytest.mark.parametrize("offline", ["a", 7, ["a"], {"a": 1}])
def test_invalid_reasons(offline):
    with pytest.raises(InvalidResponse):
        read_offline({"offline": offline})
