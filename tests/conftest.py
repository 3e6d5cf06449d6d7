from __future__ import annotations

import pytest

from tests.rules import read_rules, rules_of


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
    refuse_unknown_rules(items)


def group_of(item: pytest.Item) -> str:
    """What stays together with `--dist loadgroup`: a file, or its part for one adapter."""
    callspec = getattr(item, "callspec", None)
    adapter = callspec.params.get("adapter") if callspec else None
    return f"{item.path.stem}-{adapter}" if isinstance(adapter, str) else str(item.path)


def refuse_unknown_rules(items: list[pytest.Item]) -> None:
    """A test that names a rule which spec_notes does not have is a mistake, here and now."""
    known = read_rules()
    strangers = [
        f"{item.nodeid}: {rule}" for item in items for rule in rules_of(item) if rule not in known
    ]
    if strangers:
        raise pytest.UsageError("unknown rules:\n" + "\n".join(strangers))
