from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from natsproto.testing import Server
from natsproto.testing.certificates import Certificates
from tests.adapters.runtimes import RUNTIMES, Runtime

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def server(shared_server: Server) -> Server:
    """Return a shared server; leave it as you found it."""
    return shared_server


@pytest.fixture
def own_server() -> Iterator[Server]:
    """Start a server that the test may kill, freeze and restart."""
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def js_server() -> Iterator[Server]:
    """Start a server with JetStream for the tests of one file."""
    with Server(jetstream=True) as server:
        yield server


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> Runtime:
    """Return one runtime after the other."""
    return Runtime(request.param)


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, Any]]]:
    """Yield a server with TLS, and the options that a client needs for it."""
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    with Server(config={"tls": certificates.server("127.0.0.1")}) as server:
        yield server, {"tls": certificates.client()}


@pytest.fixture(autouse=True, scope="session")
def _interrupts() -> Iterator[None]:
    """Enable SIGINT: a shell starts background processes with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    left = [thread for thread in threading.enumerate() if thread.name == "natsproto"]
    assert left == []
