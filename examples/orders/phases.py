"""The live phase of the demo: publishers and consumers on three runtimes, and a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from examples.orders import faults, show
from examples.orders.generator import Totals, Windows
from examples.orders.live import Live
from examples.orders.tracks import Clock, Event, Track
from examples.orders.view import View

if TYPE_CHECKING:
    from natsproto.testing import Server

POLL = 0.25
KILL_SERVER = 0.35  # when this share has been read


class Outcome(NamedTuple):
    """What a phase found: for the check, the tables and the report."""

    title: str
    tracks: list[Track]
    events: list[Event]
    windows: Windows
    wrong: list[str]
    rates: dict[str, list[tuple[float, float]]]  # over time, where the tracks' own are too coarse
    figures: list[tuple[str, str]]


def compare(found: dict[str, Windows], expected: Windows) -> list[str]:
    return [
        f"{name}: {len(windows):,} windows, {len(set(windows.items()) ^ set(expected.items())):,}"
        f" differences from the {len(expected):,} of the generator"
        for name, windows in found.items()
        if windows != expected
    ]


def run_live(server: Server, totals: Totals, seed: int, *, with_faults: bool) -> Outcome:
    """Publish and consume on three runtimes; with faults, kill the server on the way."""
    live = Live(server.url, totals.count, seed)
    live.start()
    with show.console.status("four processes are starting"):
        while live.parts[0].count == 0 and not live.over(POLL / 5):
            pass
    clock = Clock()
    tracks = [Track(part.name, part.total, reads=part is not live.parts[0]) for part in live.parts]
    outage = faults.Outage(server, clock)
    with View("Live: one stream, three runtimes", tracks, clock) as view:
        over = False
        while not over:
            over = live.over(POLL)
            for track, part in zip(tracks, live.parts):
                track.add(clock(), part.count, live.parts[0].count)
            slowest = min(track.count for track in tracks)
            if with_faults and not outage.began and slowest > totals.count * KILL_SERVER:
                outage.begin()
                view.event("the server was killed")
            if outage.end_if_due():
                view.event("the server is back")
            view.update()
        if outage.end():
            view.event("the server is back")
    wrong = check_live(live, totals, acks=not outage.began)
    windows = next(iter(live.windows.values()), {})
    repeated = sum(part.repeated for part in live.parts)
    figures = [("messages delivered again after the crash", f"{repeated:,}")] if repeated else []
    return Outcome("Three runtimes", tracks, view.events, windows, wrong, {}, figures)


def check_live(live: Live, totals: Totals, *, acks: bool) -> list[str]:
    """Compare what each part did with the generator; `acks` if none can have been lost."""
    wrong = [f"{name}: the process failed" for name in live.failed()]
    wrong += [
        f"{part.name}: {part.count:,} orders of {show.money(part.cents)}, not {totals.count:,}"
        f" of {show.money(totals.cents)}"
        for part in live.parts
        if (part.count, part.cents) != (totals.count, totals.cents)
    ]
    wrong += compare(live.windows, dict(totals.by_window))
    unacked = live.unacked() if acks else 0
    if unacked:
        wrong.append(f"{unacked:,} messages are not acknowledged")
    rows = [
        [part.name, f"{part.count:,}", f"{part.seconds:.2f}", f"{part.count / part.seconds:,.0f}"]
        for part in live.parts
    ]
    columns = ["side by side", "messages", "seconds", "messages/s"]
    show.table("Live: one stream, three runtimes", columns, rows)
    return wrong
