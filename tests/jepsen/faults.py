"""A cluster of three, and what happens to it. All calls block: use a thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from natsproto.adapters.blocking import connect
from natsproto.errors import NatsError
from natsproto.testing import Cluster, Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

# Only the system account may ask the meta leader to step down.
SYSTEM = {"user": "system", "password": "jepsen"}
CONFIG: dict[str, Any] = {
    "accounts": {
        "SYS": {"users": [SYSTEM]},
        "APP": {"jetstream": "enabled", "users": [{"user": "app", "password": "jepsen"}]},
    },
    "system_account": "SYS",
    "no_auth_user": "app",
}
FREEZE = 1.0
# Longer than the followers wait for their leader before they elect another one.
LONG_FREEZE = 12.0
# Faults of clients, not of servers.
RECONNECT = "reconnect"


class Cast:
    """The members of a cluster; each fault strikes one of them."""

    def __init__(self, rng: Random, streams: list[str]) -> None:
        self._rng = rng
        self._streams = streams
        self._cluster = Cluster(3, config=CONFIG)
        self.urls = self._cluster.urls
        #: When frozen members continued.
        self.thaws: list[float] = []
        self._kinds: dict[str, Callable[[], None]] = {
            "kill": lambda: self._restart(Server.kill, self._any()),
            "kill leader": lambda: self._restart(Server.kill, self._leader()),
            "terminate": lambda: self._restart(Server.terminate, self._any()),
            "freeze": lambda: self._freeze(self._any(), FREEZE),
            "freeze leader": lambda: self._freeze(self._leader(), FREEZE),
            "depose leader": lambda: self._freeze(self._leader(), LONG_FREEZE),
            "step down": self._step_down,
            "meta step-down": lambda: self._request("META.LEADER.STEPDOWN", **SYSTEM),
        }

    def plan(self, count: int) -> list[str]:
        """Return names of faults; none is repeated before all have occurred."""
        names: list[str] = []
        while len(names) < count:
            # A long freeze takes as long as all others together.
            kinds = [
                each for each in self._kinds if each != "depose leader" or len(names) % 24 == 8
            ]
            each = [*kinds, RECONNECT]
            self._rng.shuffle(each)
            names += each
        return names[:count]

    def strike(self, name: str) -> None:
        """Let it happen, and return when the cluster is whole again."""
        self._kinds[name]()
        self._cluster.wait_formed(60.0)

    def stop(self) -> None:
        """Stop all members."""
        self._cluster.stop()

    def _any(self) -> Server:
        return self._rng.choice(self._cluster.members)

    def _leader(self) -> Server:
        """Return the leader of one of the streams, if it has one."""
        name = self._rng.choice(self._streams)
        for member in self._cluster.members:
            for account in member.monitor("/jsz?acc=APP&streams=1").get("account_details") or []:
                for stream in account.get("stream_detail") or []:
                    if stream["name"] == name:
                        leader = stream.get("cluster", {}).get("leader", "")
                        found = [each for each in self._cluster.members if each.name == leader]
                        return found[0] if found else member
        return self._any()

    def _restart(self, end: Callable[[Server], None], member: Server) -> None:
        end(member)
        time.sleep(self._rng.random())
        self._cluster.rejoin(member)

    def _freeze(self, member: Server, seconds: float) -> None:
        member.freeze()
        time.sleep(seconds * (0.5 + self._rng.random()))
        self.thaws.append(time.monotonic())
        member.thaw()

    def _step_down(self) -> None:
        self._request("STREAM.LEADER.STEPDOWN." + self._rng.choice(self._streams))

    def _request(self, endpoint: str, **credentials: str) -> None:
        # While there is no leader, no server answers; and there is nothing to do.
        with connect(self.urls, **credentials) as client:
            try:
                client.request("$JS.API." + endpoint, timeout=2.0)
            except NatsError:
                return
