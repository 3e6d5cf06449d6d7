"""A cluster of three, and what happens to it. All calls block: use a thread.

A leader that is suspended or cut off does not know that it was replaced. For a moment after it
continues, or until it notices that it is alone, it refuses writes by its old state, although its
successor may store them. So such a refusal proves nothing. `Cast.doubts` says when that was
possible, and for which streams: those that this member led and that have another leader since.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from natsproto.adapters.blocking import connect
from natsproto.errors import NatsError
from natsproto.testing import Server
from natsproto.testing.server import ServerFailed
from tests.soak.partitions import CUT, HOLE, OPEN, ProxiedCluster

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
BRIEF = 1.0
# Longer than the followers wait for their leader before they elect another one.
LONG = 12.0
# Each of these takes as long as all others together.
RARE = ("depose leader", "isolate leader", "mute leader")
FORM = 60.0
AGREE = 30.0
# Faults of clients, not of servers.
RECONNECT = "reconnect"


class Doubt(NamedTuple):
    """A time when a refusal of a write to a stream may be due to an old state."""

    stream: str
    start: float
    end: float


class Cast:
    """The members of a cluster; each fault strikes one of them."""

    def __init__(self, rng: Random, streams: list[str]) -> None:
        self._rng = rng
        self._streams = streams
        self._cluster = ProxiedCluster(CONFIG)
        self.urls = self._cluster.urls
        self.doubts: list[Doubt] = []
        self._kinds: dict[str, Callable[[], None]] = {
            "kill": lambda: self._restart(Server.kill, self._any()),
            "kill leader": lambda: self._restart(Server.kill, self._leader()),
            "terminate": lambda: self._restart(Server.terminate, self._any()),
            "freeze": lambda: self._freeze(self._any(), BRIEF),
            "freeze leader": lambda: self._freeze(self._leader(), BRIEF),
            "cut": lambda: self._isolate(self._any(), CUT, BRIEF),
            "step down": self._step_down,
            "meta step-down": lambda: self._request("META.LEADER.STEPDOWN", **SYSTEM),
            "depose leader": lambda: self._freeze(self._leader(), LONG),
            "isolate leader": lambda: self._isolate(self._leader(), CUT, LONG),
            "mute leader": lambda: self._isolate(self._leader(), HOLE, LONG),
        }

    def plan(self, count: int) -> list[str]:
        """Return names of faults; none is repeated before all others have occurred."""
        usual = [*(each for each in self._kinds if each not in RARE), RECONNECT]
        names: list[str] = []
        while len(names) < count:
            each = [*usual, self._rng.choice(RARE)]
            self._rng.shuffle(each)
            names += each
        return names[:count]

    def strike(self, name: str) -> None:
        """Let it happen, and return when the cluster is whole again."""
        self._kinds[name]()
        try:
            self._cluster.wait_formed(FORM)
        except ServerFailed:
            self._cluster.wait_formed(4 * FORM)  # others may be using the machine

    def stop(self) -> None:
        """Stop all members."""
        self._cluster.stop()

    def _any(self) -> Server:
        return self._rng.choice(self._cluster.members)

    def _leader(self) -> Server:
        """Return the leader of one of the streams, if it has one."""
        name = self._rng.choice(self._streams)
        for member in self._cluster.members:
            leader = self._leaders(member).get(name, "")
            for each in self._cluster.members:
                if each.name == leader:
                    return each
        return self._any()

    def _leaders(self, member: Server) -> dict[str, str]:
        """Return the leaders of all streams, as this member sees them; "" for none."""
        found: dict[str, str] = {}
        for account in member.monitor("/jsz?acc=APP&streams=1").get("account_details") or []:
            for stream in account.get("stream_detail") or []:
                found[stream["name"]] = stream.get("cluster", {}).get("leader") or ""
        return found

    def _restart(self, end: Callable[[Server], None], member: Server) -> None:
        end(member)
        time.sleep(self._rng.random())
        self._cluster.rejoin(member, 4 * FORM)

    def _freeze(self, member: Server, seconds: float) -> None:
        led = self._led(member)
        member.freeze()
        time.sleep(seconds * (0.5 + self._rng.random()))
        replaced = self._replaced(member, led)
        thaw = time.monotonic()
        member.thaw()
        self._note(member, led, replaced, thaw)

    def _isolate(self, member: Server, state: str, seconds: float) -> None:
        """Cut the routes of a member; its clients stay connected."""
        led = self._led(member)
        number = self._cluster.members.index(member) + 1
        start = time.monotonic()
        self._cluster.proxies.change(state, number)
        time.sleep(seconds * (0.5 + self._rng.random()))
        replaced = self._replaced(member, led)
        self._cluster.proxies.change(OPEN, number)
        self._note(member, led, replaced, start)

    def _led(self, member: Server) -> set[str]:
        return {name for name, leader in self._leaders(member).items() if leader == member.name}

    def _replaced(self, member: Server, led: set[str]) -> set[str]:
        """Return those of the streams that the others believe to have no or another leader."""
        others = [self._leaders(each) for each in self._cluster.members if each is not member]
        return {name for name in led if any(view.get(name) != member.name for view in others)}

    def _note(self, member: Server, led: set[str], replaced: set[str], start: float) -> None:
        """Wait until all agree on the leaders, and note since when a refusal proves nothing."""
        deadline = time.monotonic() + AGREE
        waiting = set(led)
        while waiting and time.monotonic() < deadline:
            views = [self._leaders(each) for each in self._cluster.members]
            now = time.monotonic()
            for name in sorted(waiting):
                leaders = {view.get(name, "") for view in views}
                if len(leaders) == 1 and "" not in leaders:
                    waiting.discard(name)
                    if name in replaced or leaders != {member.name}:
                        self.doubts.append(Doubt(name, start, now))
        self.doubts += [Doubt(name, start, deadline) for name in sorted(waiting)]

    def _step_down(self) -> None:
        self._request("STREAM.LEADER.STEPDOWN." + self._rng.choice(self._streams))

    def _request(self, endpoint: str, **credentials: str) -> None:
        # While there is no leader, no server answers; and there is nothing to do.
        with connect(self.urls, **credentials) as client:
            try:
                client.request("$JS.API." + endpoint, timeout=2.0)
            except NatsError:
                return
