"""Cluster: several servers with routes between them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .server import HOST, POLL, Server, ServerFailed, free_port

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from typing_extensions import Self

ATTEMPTS = 3


class Cluster:
    """`n` routed servers named s1, s2 ..., ready for clients when the constructor returns.

    Ready means: every member has a route to every other and, with JetStream, all agree on a meta
    leader whose followers are up to date. `config` is given to each member; `timeout` bounds the
    forming of the cluster.
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
        """Where clients connect, one URL a member."""
        return [member.url for member in self.members]

    def meta_leader(self) -> Server | None:
        """The leader of JetStream's meta group, if all members agree on one."""
        metas = [member.monitor("/jsz").get("meta_cluster", {}) for member in self.members]
        names = {meta.get("leader") for meta in metas}
        leaders = [member for member in self.members if {member.name} == names]
        return leaders[0] if leaders else None

    def stop(self) -> None:
        """Stop every member, in any state; repeatable."""
        for member in self.members:
            member.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _start(self, n: int, config: str | Mapping[str, Any]) -> None:
        # Routes are named before anybody listens, so somebody else may take a port in between.
        for attempt in range(1, ATTEMPTS + 1):
            routes = [f"nats://{HOST}:{free_port()}" for _ in range(n)]
            try:
                for number, route in enumerate(routes, 1):
                    self.members.append(self._member(number, route, routes, config))
                return
            except ServerFailed as error:
                self.stop()
                self.members.clear()
                if "address already in use" not in str(error) or attempt == ATTEMPTS:
                    raise

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

    def wait_formed(self, timeout: float = 30.0) -> None:
        """Until it is ready, as after its start; for when a member came back."""
        deadline = time.monotonic() + timeout
        while not (self._routed() and (not self._jetstream or self._led())):
            if time.monotonic() > deadline:
                raise ServerFailed(f"the cluster did not form within {timeout} s: {self.members}")
            time.sleep(POLL)

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
        # Only the leader knows how far the others are.
        replicas = leader.monitor("/jsz")["meta_cluster"].get("replicas", [])
        current = [replica for replica in replicas if replica["current"]]
        return len(current) == len(self.members) - 1
