from __future__ import annotations

import pytest

from jetstream.schema.groups import is_group


@pytest.mark.rule("PULL-6")
@pytest.mark.parametrize("name", ["a", "Z9", "a/b_c=d-e", "x" * 16])
def test_names_of_groups(name):
    assert is_group(name)


@pytest.mark.rule("PULL-6")
@pytest.mark.parametrize("name", ["", "x" * 17, "a b", "a.b", "a*", "\u00e4"])
def test_names_that_no_group_can_have(name):
    assert not is_group(name)
