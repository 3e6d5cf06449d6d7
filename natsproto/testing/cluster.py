"""A cluster: several servers with routes between them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from natsproto.adapters.blocking import connect
from natsproto.errors import AuthorizationFailed, TlsFailed

from .server import HOST, POLL, Server, ServerFailed, free_port

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from typing_extensions import Self

ATTEMPTS = 3
# How long a member may take to return, in seconds. Measured: at most 6 s on a busy machine; those
# that took longer had not caught up after 75 s, either.
CATCH_UP = 15.0
# The subjects on which a server receives the answers to API requests of its clients.
ANSWERS = "_R_."


class Cluster:
    """`n` routed servers named s1, s2 ..., ready for clients when the constructor returns.

    Ready means that every member has a route to every other and, with JetStream, that all agree on
    a meta leader whose followers are up to date, and that answers of the JetStream API reach the
    clients of every member.

    Each member has its name as a server tag, so that a stream can be placed on it.

    config: the configuration of each member
    timeout: how long the cluster may take to form, in seconds
    """

    def __init__(
        self,
        n: int = 3,
        *,
        jetstream: bool = True,
        config: str | Mapping[str, Any] = "",
        binary: str | os.PathLike[str] | None = None,
        timeout: float = 30.0,
    ) -> None:
        self.members: list[Server] = []
        self._jetstream = jetstream
        self._binary = binary
        try:
            self._start(n, config)
            self.wait_formed(timeout)
        except BaseException:
            self.stop()
            raise

    @property
    def urls(self) -> list[str]:
        """Return the URLs that clients connect to, one per member."""
        return [member.url for member in self.members]

    def meta_leader(self) -> Server | None:
        """Return the leader of JetStream's meta group, or None unless all members agree on one."""
        metas = [member.monitor("/jsz").get("meta_cluster", {}) for member in self.members]
        names = {meta.get("leader") for meta in metas}
        leaders = [member for member in self.members if {member.name} == names]
        return leaders[0] if leaders else None

    def stop(self) -> None:
        """Stop every member, whatever its state. Stopping again has no effect."""
        for member in self.members:
            member.stop()

    def wait_formed(self, timeout: float = 30.0) -> None:
        """Wait until the cluster is ready again after a member has returned."""
        deadline = time.monotonic() + timeout
        while not self.formed():
            if time.monotonic() > deadline:
                raise ServerFailed(f"cluster did not form within {timeout} s: {self.members}")
            time.sleep(POLL)

    def rejoin(self, member: Server, timeout: float = 60.0) -> None:
        """Restart a member and wait until the cluster is ready again.

        A member of nats-server 2.10 that led the meta group sometimes never catches up when it
        returns. Like an operator would, restart it once more in that case.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            member.restart()
            with suppress(ServerFailed):
                self.wait_formed(CATCH_UP)
                return
        raise ServerFailed(f"{member} did not rejoin the cluster within {timeout} s")

    def formed(self) -> bool:
        """Return whether the cluster is ready for clients; all members must be running."""
        return self._routed() and (not self._jetstream or (self._led() and self._answerable()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _start(self, n: int, config: str | Mapping[str, Any]) -> None:
        # The routes are named before any member listens, so another process may take a port first.
        for attempt in range(1, ATTEMPTS + 1):
            routes = [f"nats://{HOST}:{free_port()}" for _ in range(n)]
            try:
                self._start_members(routes, config)
                return
            except ServerFailed as error:
                self.stop()
                self.members.clear()
                if "address already in use" not in str(error) or attempt == ATTEMPTS:
                    raise

    def _start_members(self, routes: list[str], config: str | Mapping[str, Any]) -> None:
        # All at once: a member that cannot reach another one when it first stands for election
        # waits for 4 to 9 s before it does so again.
        with ThreadPoolExecutor(len(routes)) as pool:
            starts = [
                pool.submit(self._member, number, route, routes, config)
                for number, route in enumerate(routes, 1)
            ]
        self.members = [start.result() for start in starts if start.exception() is None]
        for start in starts:
            start.result()

    def _member(
        self, number: int, route: str, routes: list[str], config: str | Mapping[str, Any]
    ) -> Server:
        cluster = {"name": "test", "listen": route.removeprefix("nats://"), "routes": routes}
        return Server(
            name=f"s{number}",
            jetstream=self._jetstream,
            config=config,
            cluster=cluster,
            binary=self._binary,
        )

    def _routed(self) -> bool:
        for member in self.members:
            # Several connections make one route, one of them for each pooled group of accounts.
            peers = {route["remote_id"] for route in member.monitor("/routez")["routes"]}
            if len(peers) < len(self.members) - 1:
                return False
        return True

    def _led(self) -> bool:
        leader = self.meta_leader()
        if leader is None:
            return False
        # Only the leader knows whether its followers are up to date.
        replicas = leader.monitor("/jsz")["meta_cluster"].get("replicas", [])
        current = [replica for replica in replicas if replica["current"]]
        return len(current) == len(self.members) - 1

    def _answerable(self) -> bool:
        """Return whether each member has announced where it receives answers of the JetStream API.

        A member announces that to the others with the first API request that it passes on. The
        leader of the stream or consumer in question learns of the request from the meta leader,
        and may answer before the announcement reaches it: that answer is lost.
        """
        silent = [member for member in self.members if not self._is_announced(member)]
        return not [member for member in silent if _send_api_request(member)]

    def _is_announced(self, member: Server) -> bool:
        own = member.monitor("/varz")["server_id"]
        return all(
            any(
                subject.startswith(ANSWERS)
                for route in other.monitor("/routez?subs=1")["routes"]
                if route["remote_id"] == own
                for subject in route.get("subscriptions_list", [])
            )
            for other in self.members
            if other is not member
        )


def _send_api_request(member: Server) -> bool:
    """Return whether the member took the request: it may demand credentials."""
    try:
        with connect(member.url) as client:
            client.publish("$JS.API.INFO", reply="_INBOX.answer")
            client.flush()
    except (AuthorizationFailed, TlsFailed):
        return False
    return True
