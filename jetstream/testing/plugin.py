"""A pytest plugin: fixtures with real servers, for the tests of applications.

    pytest_plugins = ["jetstream.testing.plugin"]  # in conftest.py, or -p on the command line

nats_server       a Server without JetStream
jetstream_server  a Server with JetStream
nats_cluster      a Cluster of three, with JetStream

Each is started once, when a test first requests it. A test may stop or kill it: it is started
again before the next test. Streams, and so consumers and buckets, are deleted after each test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jetstream.blocking import JetStream
from natsproto.adapters.blocking import connect
from natsproto.testing.cluster import Cluster
from natsproto.testing.server import Server, ServerFailed

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.fixture(scope="session")
def session_nats_server() -> Generator[Server, None, None]:
    """Start a server for all tests; use nats_server."""
    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def session_jetstream_server() -> Generator[Server, None, None]:
    """Start a server with JetStream for all tests; use jetstream_server."""
    with Server(jetstream=True) as server:
        yield server


@pytest.fixture(scope="session")
def session_nats_cluster() -> Generator[Cluster, None, None]:
    """Start a cluster for all tests; use nats_cluster."""
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def nats_server(session_nats_server: Server) -> Server:
    """Return a server without JetStream."""
    _ensure_running(session_nats_server)
    return session_nats_server


@pytest.fixture
def jetstream_server(session_jetstream_server: Server) -> Generator[Server, None, None]:
    """Yield a server with JetStream that has no streams."""
    _ensure_running(session_jetstream_server)
    yield session_jetstream_server
    _ensure_running(session_jetstream_server)
    _delete_streams(session_jetstream_server.url)


@pytest.fixture
def nats_cluster(session_nats_cluster: Cluster) -> Generator[Cluster, None, None]:
    """Yield a cluster of three with JetStream that has no streams."""
    _ensure_formed(session_nats_cluster)
    yield session_nats_cluster
    _ensure_formed(session_nats_cluster)
    _delete_streams(session_nats_cluster.urls)


def _ensure_running(server: Server) -> bool:
    """Thaw a frozen server, and start one that has ended; return whether that was necessary."""
    try:
        server.thaw()
    except ServerFailed:
        server.restart()
        return True
    return False


def _ensure_formed(cluster: Cluster) -> None:
    if [member for member in cluster.members if _ensure_running(member)]:
        cluster.wait_formed()


def _delete_streams(servers: str | list[str]) -> None:
    with connect(servers) as client:
        js = JetStream(client)
        for name in js.stream_names():
            js.delete_stream(name)
