"""Orders from a seed: the same seed makes the same orders, so everybody's sums can be checked."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

REGIONS = {"africa": 2, "americas": 5, "asia": 6, "europe": 4, "oceania": 1}  # and their shares
ITEMS = {"coffee": 320, "espresso": 210, "flat white": 390, "tea": 280, "cocoa": 410}  # cents
OPENING = datetime(2026, 1, 5, 8, 0, tzinfo=timezone.utc)
GAP = 0.025  # seconds between two orders, on average
DISORDER = 5.0  # an order comes up to so many seconds late
WINDOW = 60


Windows = dict[tuple[datetime, str], int]  # cents by minute and region


class Order(NamedTuple):
    number: int
    region: str
    item: str
    cents: int
    ordered_at: datetime

    @property
    def subject(self) -> str:
        return f"orders.{self.region}"

    @property
    def id(self) -> str:
        return f"order-{self.number}"

    @property
    def window(self) -> datetime:
        """The start of the minute that it belongs to."""
        return self.ordered_at.replace(second=0, microsecond=0)

    def encode(self) -> bytes:
        fields = {
            "number": self.number,
            "region": self.region,
            "item": self.item,
            "cents": self.cents,
            "ordered_at": self.ordered_at.isoformat(timespec="milliseconds"),
        }
        return json.dumps(fields).encode()


def orders(count: int, seed: int) -> Iterator[Order]:
    """Yield orders roughly by time: each comes a little late, as from many shops."""
    rng = random.Random(seed)
    regions, shares = list(REGIONS), list(REGIONS.values())
    items = list(ITEMS.items())
    passed = 0.0
    for number in range(1, count + 1):
        passed += rng.expovariate(1 / GAP)
        item, price = rng.choice(items)
        since = passed - rng.uniform(0, min(DISORDER, passed))
        at = OPENING + timedelta(milliseconds=int(1000 * since))
        [region] = rng.choices(regions, shares)
        yield Order(number, region, item, price * rng.randint(1, 4), at)


class Totals:
    """What the generator knows, and what everybody else must find."""

    def __init__(self, orders: Iterable[Order]) -> None:
        self.count = 0
        self.cents = 0
        self.latest = OPENING
        self.by_window: Counter[tuple[datetime, str]] = Counter()
        for order in orders:
            self.count += 1
            self.cents += order.cents
            self.latest = max(self.latest, order.ordered_at)
            self.by_window[order.window, order.region] += order.cents

    def closed(self, watermark: float) -> Windows:
        """The windows that are over for whoever allows orders to be `watermark` seconds late."""
        end = self.latest - timedelta(seconds=watermark + WINDOW)
        return {key: cents for key, cents in self.by_window.items() if key[0] <= end}
