"""All modes of the simulation, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.testing.sim.releases import RELEASES
from tests.sim import (
    crowds,
    fast,
    fetches,
    forging,
    gone,
    keys,
    ordered,
    ordered_pushing,
    pins,
    pushing,
    recreating,
    scenarios,
    serving,
    storing,
)

if TYPE_CHECKING:
    from jetstream.testing.sim.releases import Release
    from tests.sim.world import World

# The modes with the newest server.
NEW_MODES: dict[str, type[World]] = {
    "consume": scenarios.Consuming,
    "bytes": scenarios.ConsumingBytes,
    "fetch": fetches.Fetching,
    "fetch_iter": fetches.Iterating,
    "next": fetches.Next,
    "gone": gone.ConsumingGone,
    "gone_bytes": gone.ConsumingGoneBytes,
    "publish": scenarios.Publishing,
    "pinned": pins.ConsumingPinned,
    "ordered": ordered.OrderedConsuming,
    "ordered_fetch": ordered.OrderedFetching,
    "recreated": recreating.RecreatedConsuming,
    "recreated_fetch": recreating.RecreatedFetching,
    "push": pushing.Pushing,
    "push_fc": pushing.PushingWithFlowControl,
    "ordered_push": ordered_pushing.OrderedPushing,
    "fast": fast.Ingesting,
    "service": serving.Serving,
    "kv_watch": keys.Watching,
    "kv_keys": keys.Listing,
    "objects": storing.Storing,
    "forged": forging.Forged,
    "fetches": crowds.Crowd,
}
# Those in which an older server behaves differently; the others have no pulls, no foreign messages
# and no features that depend on the release, or do not exist there.
_OLDER = [mode for mode in NEW_MODES if mode not in ("publish", "pinned", "fast", "service")]


def _older(mode: str, release: Release) -> type[World]:
    scenario = NEW_MODES[mode]
    return type(f"{scenario.__name__}_{release.version}", (scenario,), {"release": release})


#: With older servers, such as consume@2.10.25.
OLD_MODES: dict[str, type[World]] = {
    f"{mode}@{release.version}": _older(mode, release)
    for release in RELEASES[1:]
    for mode in _OLDER
}
MODES: dict[str, type[World]] = {**NEW_MODES, **OLD_MODES}
