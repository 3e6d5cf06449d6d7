"""CoreServer: a NATS server that passes messages on, as clients see it.

It knows subjects with wildcards, queue groups, `no_echo` and the 503 of requests without
responders. It has no users, no permissions and no cluster. Services, such as JetStream, see every
message before the subscribers do.
"""

from __future__ import annotations

from .peer import status_block

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Protocol

    from natsproto.wire.frames import Pub

    from .peer import Peer, Subscription
    from .rng import Rng

    class Service(Protocol):
        """A part of the server with subjects of its own."""

        def published(self, __peer: Peer, __pub: Pub) -> bool:
            """Handle a message; return whether it was for this service."""
            ...

        def subscribed(self, __peer: Peer) -> None:
            """Look at the new subscription of a client."""
            ...


class CoreServer:
    """The subscriptions of all clients, and the way of messages to them."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._peers: list[Peer] = []
        #: The parts of the server that have subjects of their own.
        self.services: list[Service] = []

    @property
    def peers(self) -> list[Peer]:
        """The connected clients that have sent anything."""
        self._peers = [peer for peer in self._peers if peer.alive]
        return list(self._peers)

    def subscribed(self, peer: Peer) -> None:
        """Handle SUB."""
        self._know(peer)
        for service in self.services:
            service.subscribed(peer)

    def published(self, peer: Peer, pub: Pub) -> None:
        """Handle PUB and HPUB."""
        self._know(peer)
        taken = False
        for service in self.services:
            taken = service.published(peer, pub) or taken
        taken = self.route(pub, peer) or taken
        if not taken and pub.raw_reply and peer.options.get("no_responders"):
            block = status_block("503", header=f"Nats-Subject: {pub.subject}\r\n")
            peer.deliver(pub.raw_reply, pub.raw_reply, b"", block, b"")

    def route(self, pub: Pub, origin: Peer | None = None) -> bool:
        """Deliver a message to its subscribers; return whether there are any."""
        groups: dict[str, list[tuple[Peer, Subscription]]] = {}
        subscribers: list[tuple[Peer, Subscription]] = []
        for peer in self.peers:
            if peer is origin and peer.options.get("echo") is False:
                continue
            for sub in peer.subs:
                if not sub.matches(pub.raw_subject):
                    continue
                if sub.queue:
                    groups.setdefault(sub.queue, []).append((peer, sub))
                else:
                    subscribers.append((peer, sub))
        subscribers += [self._rng.choice(groups[queue]) for queue in sorted(groups)]
        for peer, sub in subscribers:
            peer.deliver_to(sub, pub.raw_subject, pub.raw_reply, pub.raw_headers, pub.data)
        return bool(subscribers)

    def _know(self, peer: Peer) -> None:
        if peer not in self._peers:
            self._peers.append(peer)
