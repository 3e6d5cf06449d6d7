"""What is left of a call, on the client and on the server."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

from tests.soak.load import contents

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsproto.testing import Server

    from .stage import Stage

PATIENCE = 15.0
PAUSE = 0.02
# The timers of lookups that end by themselves, after three seconds at most.
LATER = {"timers"}


class Left:
    """Compares what there is now with what there was before the first call."""

    def __init__(self, stage: Stage, server: Server, account: str) -> None:
        self._stage = stage
        self._server = server
        self._account = account
        self._before: dict[str, Any] = {}

    async def note(self) -> None:
        """Remember what there is."""
        self._before = await self._look()

    async def compare(self, sleep: Callable[[float], Awaitable[None]], at_last: bool) -> str:
        """Wait until everything is as it was, and return "", or what is not.

        at_last  there are no more calls: compare timers, too
        """
        deadline = time.monotonic() + PATIENCE
        pause = PAUSE
        while True:
            await self._stage.clean_up()
            now = await self._look()
            differences = [
                f"{name}: {self._before[name]} before, {now[name]} after"
                for name in now
                if now[name] != self._before[name] and (at_last or name not in LATER)
            ]
            if not differences or time.monotonic() >= deadline:
                return ", ".join(differences)
            gc.collect()
            await sleep(pause)
            pause = min(2 * pause, 0.5)

    async def _look(self) -> dict[str, Any]:
        client = self._stage.client
        await client.flush()
        connection = client.session.connection
        subs, requests, timers = contents(client)
        waitables = [connection.writable, connection.events, *connection.subscriptions.receivers()]
        seen: dict[str, Any] = {
            "state": client.state,
            "connects": client.stats.connects,
            "subscriptions": subs,
            "requests": requests,
            "timers": timers,
            "waiters": sum(len(each.waiters) for each in waitables),
        }
        seen.update(await self._look_at_server())
        return seen

    async def _look_at_server(self) -> dict[str, Any]:
        info = self._stage.client.info
        assert info is not None
        connz = self._server.monitor(f"/connz?subs=1&cid={info.client_id}")
        path = f"/jsz?acc={self._account}&consumers=1&streams=1"
        [account] = self._server.monitor(path)["account_details"]
        details = account.get("stream_detail", [])
        return {
            "subscriptions at the server": len(connz["connections"][0]["subscriptions_list"]),
            "streams": sorted(stream["name"] for stream in details),
            "consumers, with their open pulls": sorted(
                (stream["name"], each["name"], each.get("num_waiting", 0))
                for stream in details
                for each in stream.get("consumer_detail") or []
            ),
            "objects with chunks": await self._count_chunks(),
            "deleted streams on disk": self._deleted_on_disk(),
        }

    def _deleted_on_disk(self) -> list[str]:
        """Return the directories of deleted streams that the server is still removing.

        If a stream of the same name were created and deleted meanwhile, its messages could
        reappear in the next one (question 36 in spec_notes).
        """
        streams = self._server.directory / "store" / "jetstream" / self._account / "streams"
        return sorted(path.name for path in streams.glob(".*"))

    async def _count_chunks(self) -> int:
        stream = await self._stage.other.stream("OBJ_o")
        info = await stream.info(subjects_filter="$O.o.C.>")
        return len(info.state.subjects or {})
