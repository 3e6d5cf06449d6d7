"""JetStreamService: the streams of a simulated server, and its faults.

It takes the messages that streams store, the calls of the API (api.py), pulls and acknowledgments.
Faults are attributes and methods; jetstream.testing.sim.Simulation has them under better names.
"""

from __future__ import annotations

import json
from collections import OrderedDict

from natsproto.testing.sim.peer import status_block
from natsproto.testing.sim.port import NANO

from .api import Api
from .consumers import EPHEMERAL, StreamPull, StreamPush
from .push_model import PushModel
from .releases import NEWEST
from .stream import Refused, Stream

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from natsproto.testing.sim.peer import Peer
    from natsproto.wire.frames import Pub

    from .pull_model import Clock
    from .releases import Release
    from .stream import StoredMessage

    Consumer: TypeAlias = "StreamPull | StreamPush"

_API = "$JS.API."
_NEXT = "$JS.API.CONSUMER.MSG.NEXT."


class Assets:
    """A stream with its consumers."""

    def __init__(self, service: JetStreamService, stream: Stream) -> None:
        self._service = service
        self.stream: Stream = stream
        self.pushes: PushModel = PushModel(service.clock, stream.name, release=service.release)
        self.consumers: OrderedDict[str, Consumer] = OrderedDict()

    def add(self, name: str, config: dict[str, Any]) -> Consumer:
        """Create a consumer."""
        clock = self._service.clock
        consumer: Consumer
        if config.get("deliver_subject"):
            consumer = StreamPush(self.pushes, self.stream, name, config)
            self.pushes.consumers[name] = consumer
        else:
            consumer = StreamPull(clock, self.stream, name, config)
            consumer.loses = self._service.loses_message
        consumer.position.miscounts = self._service.miscounts
        if self.stream.config.get("retention") == "workqueue":
            consumer.on_acked = self.stream.remove
        self.consumers[name] = consumer
        default = 0.0 if config.get("durable_name") else EPHEMERAL
        threshold = config.get("inactive_threshold", 0) / NANO or default
        if threshold:
            clock.at(clock.now + threshold, lambda: self._expire(consumer, threshold))
        return consumer

    def _expire(self, consumer: Consumer, threshold: float) -> None:
        """Delete a consumer that is not in use."""
        clock = self._service.clock
        if self.consumers.get(consumer.name) is not consumer:
            return
        if consumer.busy or not self._service.leader:
            consumer.touched = clock.now
        if clock.now >= consumer.touched + threshold:
            self.remove(consumer.name, "")
        else:
            at = consumer.touched + threshold
            clock.at(at, lambda: self._expire(consumer, threshold))

    def remove(self, name: str, line: str = "409 Consumer Deleted") -> None:
        """Delete a consumer; its pulls get this status line, unless it is empty."""
        consumer = self.consumers.pop(name)
        self.pushes.consumers.pop(name, None)
        consumer.end(line)

    def each(self) -> list[Consumer]:
        """Return the consumers, the oldest first."""
        return list(self.consumers.values())

    def pump(self) -> None:
        """Deliver all messages that can be delivered."""
        for consumer in self.each():
            consumer.pump()


class JetStreamService:
    """The part of a simulated server that is JetStream."""

    def __init__(self, clock: Clock, release: Release = NEWEST) -> None:
        self.clock: Clock = clock
        self.release: Release = release
        self.assets: OrderedDict[str, Assets] = OrderedDict()
        self._api = Api(self)
        self._peers: list[Peer] = []
        #: Whether streams and consumers have leaders.
        self.leader: bool = True
        #: Whether everything is silent: nothing is delivered, stored or answered.
        self.frozen: bool = False
        #: How many of the next ones get lost.
        self.lose_pulls: int = 0
        self.lose_acks: int = 0
        self.lose_puback: int = 0
        #: Which of the next messages to pull consumers gets lost: 1 is the next one, 0 none.
        self.lose_message: int = 0
        #: Whether consumers that are created from now on report too few pending messages.
        self.miscounts: bool = False
        #: Called with each message that is stored.
        self.on_stored: Callable[[str, StoredMessage], None] = lambda stream, message: None

    # What clients do

    def subscribed(self, peer: Peer) -> None:
        """Deliver to push consumers that have a subscriber now."""
        self._peers = [each for each in self._peers if each.alive and each is not peer]
        self._peers.append(peer)
        for assets in self._each():
            assets.pushes.subscribed(peer)

    def published(self, peer: Peer, pub: Pub) -> bool:
        """Handle a message; return whether it was for JetStream."""
        subject = pub.subject
        if subject.startswith(_NEXT):
            return self._pull(peer, pub)
        if subject.startswith(_API):
            if self.frozen:
                return True
            return self._api.call(peer, pub, subject[len(_API) :])
        if subject.startswith("$JS.ACK."):
            self._acked(peer, pub)
            return True
        if subject.startswith("$JS.FC."):
            for assets in self._each():
                assets.pushes.published(peer, pub)
            return True
        for assets in self._each():
            if assets.stream.takes(subject):
                self._store(assets, peer, pub)
                return True
        return False

    def _pull(self, peer: Peer, pub: Pub) -> bool:
        stream, _, name = pub.subject[len(_NEXT) :].partition(".")
        assets = self.assets.get(stream)
        consumer = assets.consumers.get(name) if assets is not None else None
        if not self.release.answers_absent and (consumer is None or not self.leader):
            return True
        if isinstance(consumer, StreamPush) and self.leader:
            peer.deliver(
                pub.raw_reply, pub.raw_reply, b"", status_block("409 Consumer is push based"), b""
            )
            return True
        if not isinstance(consumer, StreamPull) or not self.leader:
            return False
        if self.lose_pulls:
            self.lose_pulls -= 1
            return True
        consumer.pull(peer, pub.raw_reply, pub.data)
        return True

    def _acked(self, peer: Peer, pub: Pub) -> None:
        words = pub.subject.split(".")
        assets = self.assets.get(words[2])
        if self.lose_acks:
            self.lose_acks -= 1
            return
        if assets is None or self.frozen or not self.leader:
            return
        consumer = assets.consumers.get(words[3])
        if consumer is not None:
            consumer.acked(int(words[5]), pub.data)
            if pub.raw_reply:
                peer.deliver(pub.raw_reply, pub.raw_reply, b"", None, b"")

    def _store(self, assets: Assets, peer: Peer, pub: Pub) -> None:
        if self.frozen:
            return
        reply = pub.raw_reply
        if not self.leader:
            if reply:
                peer.deliver(reply, reply, b"", status_block("503"), b"")
            return
        stream = assets.stream
        answer: dict[str, Any]
        try:
            seq, known = stream.publish(pub.subject, pub.raw_headers, pub.data, self.clock.now)
        except Refused as refusal:
            answer = {"error": refusal.error, "stream": stream.name, "seq": 0}
        else:
            answer = {"stream": stream.name, "seq": seq}
            if known:
                answer["duplicate"] = True
            else:
                self._stored(assets, seq)
        if reply and not stream.config.get("no_ack") and not self.lose_puback:
            peer.deliver(reply, reply, b"", None, json.dumps(answer).encode())
        self.lose_puback = max(0, self.lose_puback - 1)
        assets.pump()

    def _stored(self, assets: Assets, seq: int) -> None:
        stream = assets.stream
        message = stream.at(seq)
        assert message is not None
        self.on_stored(stream.name, message)
        age = stream.config.get("max_age", 0) / NANO
        if age:
            self.clock.at(self.clock.now + age, lambda: stream.expire(self.clock.now))

    def loses_message(self) -> bool:
        """Count a message to a pull consumer; return whether it is the one to lose."""
        lost = self.lose_message == 1
        self.lose_message = max(0, self.lose_message - 1)
        return lost

    # What the API does

    def create(self, config: dict[str, Any]) -> Assets:
        """Create a stream."""
        assets = self.assets[config["name"]] = Assets(
            self, Stream(config, self.clock.now, self.release)
        )
        for peer in self._peers:
            assets.pushes.subscribed(peer)
        return assets

    def delete(self, name: str) -> None:
        """Delete a stream with its consumers."""
        assets = self.assets.pop(name)
        for consumer in assets.each():
            assets.remove(consumer.name)

    def _each(self) -> list[Assets]:
        return list(self.assets.values())

    def consumers(self) -> list[Consumer]:
        """Return the consumers of all streams."""
        return [consumer for assets in self._each() for consumer in assets.each()]

    # What happens to servers

    def step_down(self, line: str = "409 Leadership Change") -> None:
        """Remove the leaders; open pulls get this status line, unless it is empty."""
        self.leader = False
        for assets in self._each():
            assets.pushes.frozen = True
            for consumer in assets.each():
                if isinstance(consumer, StreamPull):
                    consumer.step_down([line] if line else [])

    def elect(self) -> None:
        """Elect leaders; each continues where the one before has ended."""
        self.leader = True
        for assets in self._each():
            assets.pushes.frozen = self.frozen
            for consumer in assets.each():
                if isinstance(consumer, StreamPull):
                    consumer.leader = True
            assets.pump()

    def freeze(self) -> None:
        """Stop all activity: no messages, no heartbeats, no answers."""
        self.frozen = True
        for assets in self._each():
            assets.pushes.frozen = True
            for consumer in assets.each():
                if isinstance(consumer, StreamPull):
                    consumer.freeze()

    def thaw(self) -> None:
        """Continue; pulls that arrived in the meantime are lost."""
        self.frozen = False
        for assets in self._each():
            assets.pushes.frozen = False
            for consumer in assets.each():
                if isinstance(consumer, StreamPull):
                    consumer.frozen = False
                    consumer.limbo = []
            assets.pump()

    def forget(self) -> None:
        """Lose the consumers that a server keeps in memory: consumers without a durable name."""
        for assets in self._each():
            for consumer in assets.each():
                if not consumer.config.get("durable_name") or consumer.config.get("mem_storage"):
                    assets.remove(consumer.name, "")
