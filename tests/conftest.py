from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.rules import read_rules, rules_of

# Use the same examples in every run, even on a slow machine; `make fuzz` looks for new ones. Do not
# check the time, because these tests run at the lowest priority.
settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail if a test names a rule that spec_notes does not have."""
    known = read_rules()
    strangers = [
        f"{item.nodeid}: {rule}" for item in items for rule in rules_of(item) if rule not in known
    ]
    if strangers:
        raise pytest.UsageError("unknown rules:\n" + "\n".join(strangers))
