"""GroupMsg: a message of a consumer group, without the partition in its subject."""

from __future__ import annotations

from jetstream.message import JsMsg


class GroupMsg(JsMsg):
    """A message of a consumer group: a JsMsg with the subject that it was published to.

    The server puts the number of the partition before that subject (GROUP-9).
    """

    __slots__ = ()

    @property
    def subject(self) -> str:
        """The subject that the message was published to."""
        return self._msg.subject.partition(".")[2]

    @property
    def partition(self) -> int:
        """The partition that the message belongs to; -1 if the subject does not begin with one."""
        token = self._msg.subject.partition(".")[0]
        return int(token) if token.isdigit() else -1


def group_msg(msg: JsMsg) -> GroupMsg:
    """Return the message as a group message."""
    return GroupMsg(msg._msg, msg._session, msg.settled)  # pyright: ignore[reportPrivateUsage]
