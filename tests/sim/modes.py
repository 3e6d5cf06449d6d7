"""All modes of the simulation, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from tests.sim.world import World

MODES: dict[str, type[World]] = {
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
