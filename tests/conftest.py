from __future__ import annotations

import pytest

from tests.rules import read_rules, rules_of


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that names a rule which spec_notes does not have is a mistake, here and now."""
    known = read_rules()
    strangers = [
        f"{item.nodeid}: {rule}" for item in items for rule in rules_of(item) if rule not in known
    ]
    if strangers:
        raise pytest.UsageError("unknown rules:\n" + "\n".join(strangers))
