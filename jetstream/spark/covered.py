"""delivery=dedup: whether a repeated write has all positions that earlier attempts stored.

A row without an id of its own is known by its partition and its position there, and a task compares
its rows with those that are stored at the same positions (replay.py). But if an earlier attempt
stored rows at positions that this one does not have, they are at other positions now, and were
stored there a second time: adaptive execution may have merged two partitions, for example.

The rows of a task are stored in order, and the first of them alone. So an earlier attempt stored
more than this one has if, and only if, the stream knows the id of

    the position after the last row of a task      the task looks, when it ends
    the first position of a partition that has     the driver looks, when the write ends
    no rows now, or does not exist

With a deadLetterSubject, a position may be that of a dead letter, so both streams are asked. And a
row that is a dead letter now must not be stored as a row.

Only a write that may be a repetition looks: the first micro-batch after a start of the query, a
named batch write, and a task that met a row of its own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from jetstream.api.client import read_reply
from jetstream.errors import ApiError
from jetstream.kv.bucket import ROLLUP
from jetstream.publish.headers import EXPECTED_LAST_MSG_ID, MSG_ID
from natsproto.errors import InvalidState, NatsError, NoResponders
from natsproto.port import run_sync
from natsproto.wire.headers import Headers

from .connect import client
from .deadletter import DEAD
from .queries import StreamQueries
from .replay import mismatch
from .retry import RETRYABLE_CALLS, Backoff

if TYPE_CHECKING:
    from jetstream.api.client import ApiClient
    from natsproto.connection.waitable import Request
    from natsproto.session import Session

    from .deadletter import DeadLetters
    from .options import Settings

logger: logging.Logger = logging.getLogger("jetstream.spark")
_CHUNK = 256  # requests in flight at a time
_PASSING = (*RETRYABLE_CALLS, NoResponders)  # the stream has no leader
_NEVER = "this message is never stored"
# How many more partitions an earlier attempt may have had. Spark starts tasks in the order of their
# partitions, so one of the first of them has stored rows.
_MORE_PARTITIONS = 1024
_first_batches: dict[tuple[str, str], int] = {}  # by query and run, in this worker


class Positions(NamedTuple):
    """The positions of a task, for the check of the driver.

    ids      the prefix of its ids, which ends with the partition
    rows     the number of its rows
    subject  that of a row that is stored; "" if there is none
    again    whether the write may be a repetition
    stored   the number of that row, which is 0 unless the first rows are dead letters
    """

    ids: str
    rows: int
    subject: str
    again: bool
    stored: int = 0


def may_be_replay(query: str, run: str, number: int) -> bool:
    """Return whether a micro-batch may be a replay: only the first one of a run is."""
    # A worker that starts later takes its own first batch for that of the run: it looks in vain.
    return _first_batches.setdefault((query, run), number) == number


def check_task(settings: Settings, positions: Positions, letters: DeadLetters | None) -> None:
    """Raise ReplayMismatch if an earlier attempt at this task stored more rows than it has."""
    if not positions.again:
        return
    write_id = settings.text("writeId")
    beyond = "%s.%d" % (positions.ids, positions.rows)
    dead = sorted(letters.rows - letters.unexpected) if letters else []
    others = ["%s.%d" % (positions.ids, row) for row in dead]
    known = _known(settings, positions.subject, [beyond, *others])
    if letters and _known(settings, settings.text("deadLetterSubject"), [DEAD + beyond]):
        known.add(beyond)
    if beyond in known:
        text = "this task has %d rows, and an earlier attempt stored more: %s is the id of one"
        raise mismatch(text % (positions.rows, beyond), write_id)
    if known:
        text = "an earlier attempt stored a row that is a dead letter now: %s is its id"
        raise mismatch(text % min(known), write_id)


def check_write(settings: Settings, tasks: list[Positions]) -> None:
    """Raise ReplayMismatch if an earlier attempt stored rows of partitions that have none now."""
    if not any(task.again for task in tasks):
        return
    write = tasks[0].ids.rpartition(".")[0]
    partitions = {"%s.%d" % (write, n) for n in range(len(tasks) + _MORE_PARTITIONS)}
    filled = [task for task in tasks if task.subject]
    dead = settings.text("deadLetterSubject")
    try:
        known = set[str]()
        if filled:
            known = _stored(settings, filled[0], partitions - {task.ids for task in filled})
        if dead:
            empty = sorted(partitions - {task.ids for task in tasks})
            known |= _known(settings, dead, [DEAD + each + ".0" for each in empty])
    except NatsError as error:
        raise unchecked(error) from error
    if known:
        text = "an earlier run stored rows of a partition that has none now, so they are stored"
        text += " twice: %s is the id of one" % min(known)
        raise mismatch(text, settings.text("writeId"))


def _stored(settings: Settings, task: Positions, partitions: set[str]) -> set[str]:
    """Return the first ids of these partitions that the stream knows, if it knows this task's."""
    own = "%s.%d" % (task.ids, task.stored)
    known = _known(settings, task.subject, [own, *[each + ".0" for each in sorted(partitions)]])
    if own in known:
        return known - {own}
    logger.warning(
        "rows of earlier runs in other partitions were not checked: the stream did not recognize"
        " the id of a row that this write stored: %s",
        own,
    )
    return set()


def unchecked(error: NatsError) -> InvalidState:
    """Return the error for a write that may be a repetition, and could not be checked.

    The write has stored its rows, but is not finished: Spark repeats it, and checks it again.
    """
    text = "this write may be a repetition, and the driver could not check whether an earlier"
    text += " attempt stored rows of other partitions: %s. Repeat it when the driver reaches the"
    text += " stream, or give the rows a msg_id"
    return InvalidState(text % error)


def _known(settings: Settings, subject: str, ids: list[str]) -> set[str]:
    """Return the message ids that the stream of this subject has seen within its window.

    A stream looks up the id of a message before it looks at these two headers. So a message with an
    impossible last id and an invalid rollup is never stored, but is acknowledged as a duplicate if
    its own id is known.

    Two headers, because the last id alone would be fatal: a stream with replicas compares it only
    after its servers have agreed on the message, and since 2.14 the mismatch stops the stream. It
    checks the rollup before that. Servers before 2.12 compare the last id in any case; there, a
    stream with replicas may then take the id for that of a message in progress.
    """
    known: set[str] = set()
    left: list[str] = ids if subject else []
    backoff = Backoff()
    while left:
        answers: dict[str, bool] = {}
        error: Exception | None = None
        try:
            api = StreamQueries(settings, "").api()
            with client(settings).port.lock:
                answers, error = run_sync(_ask(api, subject, left[:_CHUNK]))
        except _PASSING as caught:
            error = caught
        known.update(each for each, is_known in answers.items() if is_known)
        # Those without an answer are sent again: a leader that steps down drops a few.
        left = [each for each in left if each not in answers]
        if answers:
            backoff.reset()
        elif error is not None:
            backoff.failed(error)
    return known


async def _ask(
    api: ApiClient, subject: str, ids: list[str]
) -> tuple[dict[str, bool], Exception | None]:
    """Return whether each id is known, as far as there are answers, and the error otherwise."""
    session = api.session
    answers: dict[str, bool] = {}
    failure: Exception | None = None
    requests = [
        session.connection.start_request(
            subject,
            b"",
            deadline=session.deadline(api.timeout),
            headers=Headers([(MSG_ID, each), (EXPECTED_LAST_MSG_ID, _NEVER), (ROLLUP, _NEVER)]),
        )
        for each in ids
    ]
    try:
        for each, request in zip(ids, requests):
            answer = await _answer(session, request)
            if isinstance(answer, bool):
                answers[each] = answer
            else:
                failure = answer
    finally:
        for request in requests:
            if not request.done:
                session.connection.cancel(request)
    return answers, failure


async def _answer(session: Session, request: Request) -> bool | Exception:
    """Return whether the message is a duplicate; the error if that is not known."""
    try:
        reply = await session.settle(request)
        return reply is not None and bool(read_reply(reply.data).get("duplicate"))
    except _PASSING as error:  # also the answer of a cluster without a leader
        return error
    except ApiError:
        return False
