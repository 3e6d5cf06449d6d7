from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsproto.testing import Servers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with Servers() as servers:
        yield servers
