"""The list of JetStream's checks, and the function that runs them after those of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsproto import testing
from natsproto.testing.suite import Checks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from natsproto.testing.runner import Connect, Runner
    from natsproto.testing.suite import Registrar, Report

#: The checks of JetStream; those of the core are in natsproto.testing.
CHECKS = Checks()
check: Registrar = CHECKS.check


def check_adapter(
    connect: Connect,
    runner: Runner,
    *,
    checks: Iterable[str] | None = None,
    server_binary: str | None = None,
) -> Report:
    """Run the checks of the core and of JetStream on an adapter: all, or only the named ones.

    The arguments, the report and the errors are those of natsproto.testing.check_adapter.
    """
    everything = {**testing.CHECKS, **CHECKS}
    return testing.check_adapter(
        connect, runner, checks=checks, suite=everything, server_binary=server_binary
    )
