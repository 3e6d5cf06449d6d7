"""The servers of a soak and the faults that happen to them. All calls block: use a thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from natsproto.adapters.blocking import connect
from natsproto.errors import NatsError
from natsproto.testing import Cluster, Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

# A lame duck closes its clients after the grace period, one after the other.
CONFIG: dict[str, Any] = {"lame_duck_grace_period": "1s", "lame_duck_duration": "30s"}
# Only the system account may ask the meta leader to step down.
SYSTEM = {"user": "system", "password": "soak"}
CLUSTER: dict[str, Any] = {
    **CONFIG,
    "accounts": {
        "SYS": {"users": [SYSTEM]},
        "SOAK": {"jetstream": "enabled", "users": [{"user": "soak", "password": "soak"}]},
    },
    "system_account": "SYS",
    "no_auth_user": "soak",
}
FREEZE = 1.0
DUCK = 1.5


class Single:
    """One server; its stream is in files, so that a crash loses nothing."""

    replicas = 1

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._server = Server(jetstream=True, config=CONFIG)
        self.urls = [self._server.url]
        self.faults: dict[str, Callable[[], None]] = {
            "kill": self._kill,
            "terminate": self._terminate,
            "freeze": self._freeze,
            "lame duck": self._lame_duck,
            "restart": self._server.restart,
        }

    def _kill(self) -> None:
        self._server.kill()
        self._server.restart()

    def _terminate(self) -> None:
        self._server.terminate()
        time.sleep(self._rng.random())
        self._server.restart()

    def _freeze(self) -> None:
        self._server.freeze()
        time.sleep(FREEZE * (0.5 + self._rng.random()))
        self._server.thaw()

    def _lame_duck(self) -> None:
        self._server.lame_duck()
        time.sleep(DUCK)
        self._server.terminate()
        self._server.restart()

    def stop(self) -> None:
        self._server.stop()


class ThreeNodes:
    """A cluster of three; each fault strikes one member."""

    replicas = 3

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._cluster = Cluster(3, config=CLUSTER)
        self.urls = self._cluster.urls
        self.faults: dict[str, Callable[[], None]] = {
            "kill": lambda: self._with_one(Server.kill, 0.0),
            "terminate": lambda: self._with_one(Server.terminate, 1.0),
            "freeze": self._freeze,
            "lame duck": lambda: self._with_one(Server.lame_duck, DUCK),
            "restart": lambda: self._with_one(Server.terminate, 0.0),
            "stream step-down": lambda: self._step_down("STREAM.LEADER.STEPDOWN.SOAK"),
            "consumer step-down": lambda: self._step_down("CONSUMER.LEADER.STEPDOWN.SOAK.c"),
            "meta step-down": lambda: self._step_down("META.LEADER.STEPDOWN", **SYSTEM),
        }

    def _with_one(self, strike: Callable[[Server], None], longest: float) -> None:
        member = self._rng.choice(self._cluster.members)
        strike(member)
        time.sleep(longest)
        self._cluster.rejoin(member)

    def _freeze(self) -> None:
        member = self._rng.choice(self._cluster.members)
        member.freeze()
        time.sleep(FREEZE * (0.5 + self._rng.random()))
        member.thaw()
        self._cluster.wait_formed()

    def _step_down(self, endpoint: str, **credentials: str) -> None:
        # While there is no leader, no server answers; and there is nothing to do.
        with connect(self.urls, **credentials) as client:
            try:
                client.request("$JS.API." + endpoint, timeout=2.0)
            except NatsError:
                return
        self._cluster.wait_formed()

    def stop(self) -> None:
        self._cluster.stop()


PLACES: dict[str, type[Single] | type[ThreeNodes]] = {"single": Single, "cluster": ThreeNodes}
# Faults of clients, not of servers.
RECONNECT = "reconnect"


def plan(place: Single | ThreeNodes, count: int, rng: Random) -> list[str]:
    """Return names of faults in a random order; none is repeated before all have occurred."""
    names: list[str] = []
    while len(names) < count:
        each = [*place.faults, RECONNECT]
        rng.shuffle(each)
        names += each
    return names[:count]
