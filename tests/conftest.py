from __future__ import annotations

import pytest
from hypothesis import settings

from tests.rules import read_rules, rules_of

# The same examples in every run, on a slow machine too; `make fuzz` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.load_profile("steady")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that names a rule which spec_notes does not have is a mistake, here and now."""
    known = read_rules()
    strangers = [
        f"{item.nodeid}: {rule}" for item in items for rule in rules_of(item) if rule not in known
    ]
    if strangers:
        raise pytest.UsageError("unknown rules:\n" + "\n".join(strangers))
