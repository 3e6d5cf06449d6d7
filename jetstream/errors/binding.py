"""BindRefused and its subclasses: an existing consumer that does not match the call."""

from __future__ import annotations

from natsproto.errors import LocalError

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any


class BindRefused(LocalError):
    """The existing consumer does not match the call: change one of them.

    Nothing was changed. `wanted` and `found` are the values that differ.
    """

    def __init__(
        self, message: str, rule: str, stream: str, consumer: str, wanted: object, found: object
    ) -> None:
        super().__init__(message, rule)
        self.message = message
        self.stream = stream
        self.consumer = consumer
        self.wanted = wanted
        self.found = found

    def __reduce__(self) -> tuple[Any, ...]:
        values = (self.message, self.rule, self.stream, self.consumer, self.wanted, self.found)
        return type(self), values, self.__dict__


class DuplicateSubscription(BindRefused):
    """The consumer has a subscriber; without a queue group only one is allowed."""


class QueueRequired(BindRefused):
    """The consumer has a queue group: subscribe with its name as `queue`."""


class QueueMismatch(BindRefused):
    """The consumer has another queue group."""


class QueueNotServed(BindRefused):
    """The consumer has no queue group: subscribe without `queue`."""


class SubjectMismatch(BindRefused):
    """The consumer filters other subjects."""


class PullOfPushConsumer(BindRefused):
    """The consumer is a push consumer, which cannot be pulled from."""


class PushOfPullConsumer(BindRefused):
    """The consumer is a pull consumer, which cannot be subscribed to."""


class FlowControlWithQueue(BindRefused):
    """Flow control does not work in a queue group: each member sees some of the messages."""


class HeartbeatWithQueue(BindRefused):
    """Heartbeats do not work in a queue group: each goes to one member only."""


class ConfigMismatch(BindRefused):
    """The consumer has another value in this `field`; nothing was changed."""

    field: str = ""
