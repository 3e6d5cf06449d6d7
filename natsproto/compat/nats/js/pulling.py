"""Pulls whose messages arrive on a subject of the program's choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jetstream.pull.api import Puller
from jetstream.pull.fetch import Fetcher

if TYPE_CHECKING:
    from jetstream.streams.consumer import BoundConsumer


class PrefixedPuller(Puller):
    """A puller whose inboxes begin with `prefix`, which may be all that the user is allowed."""

    prefix: str = ""

    def _fetcher(self) -> Fetcher:
        if all(each.ended or each.draining or each.leaving for each in self._idle):
            connection = self.session.connection
            inbox = self.prefix + connection.new_token()
            fetcher = Fetcher(inbox.encode(), self.name)
            connection.subscribe(inbox + ".*", fetcher)
            self._idle.append(fetcher)
        return super()._fetcher()


def reply_to(consumer: BoundConsumer, prefix: str) -> PrefixedPuller:
    """Return a puller for the consumer with inboxes of this prefix."""
    puller = PrefixedPuller(
        consumer._api,  # pyright: ignore[reportPrivateUsage]
        consumer.stream,
        consumer.name,
        False,
    )
    puller.looks_up = False
    puller.prefix = prefix
    return puller
