"""A checker of linearizability: is there an order of the operations that explains their results?

The algorithm is that of Wing and Gong, with the memory of Lowe and the linked list of Porcupine. It
tries to linearize one operation after the other, each after those that had returned when it was
invoked, and goes back when it gets stuck. A set of operations that was linearized in another order
and led to the same state need not be tried again.

An operation without a return (`returned` is None) may have taken effect at any time after its
invocation, or never. Equal ones are linearized in the order of their invocations: another order
would explain nothing else. An operation that leaves the state as it is, such as a refused write, is
linearized as soon as it is possible, for good: it would not make anything possible later.

A model may be given the order of the results, which the stream knows: then nothing is tried that
the stream contradicts, and even a history with hundreds of concurrent operations takes no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Operation(NamedTuple):
    """A call of a client on one key, with the times of its invocation and of its return."""

    what: str
    argument: Any
    result: Any
    invoked: float
    returned: float | None

    def __str__(self) -> str:
        end = "" if self.returned is None else f"{self.returned:.6f}"
        return f"[{self.invoked:.6f} {end}] {self.what}({self.argument}) -> {self.result}"


class Model(Protocol):
    """How operations change the state of a key, one after the other."""

    @property
    def initial(self) -> Hashable:
        """The state of a key before its first operation."""
        ...

    def step(self, state: Any, operation: Operation) -> Any:
        """Return the state after the operation; None if it cannot have this result now."""
        ...


class _Entry:
    """An invocation or a return, in a list by time. Linearized operations leave the list."""

    __slots__ = ("before", "bit", "end", "next", "operation", "twin")

    def __init__(self, operation: Operation | None, bit: int) -> None:
        self.operation = operation  # None for a return
        self.bit = bit
        self.before: _Entry
        self.next: _Entry | None = None
        self.end: _Entry | None = None  # the return of an invocation
        self.twin = 0  # the bit of an equal one without a return, invoked before

    def lift(self) -> None:
        """Take the invocation and its return out of the list."""
        for each in (self, self.end):
            if each is not None:
                each.before.next = each.next
                if each.next is not None:
                    each.next.before = each.before

    def put_back(self) -> None:
        """Undo `lift`, if it was the last one."""
        for each in (self.end, self):
            if each is not None:
                each.before.next = each
                if each.next is not None:
                    each.next.before = each


def _list(operations: Sequence[Operation]) -> _Entry:
    """Return the head of the list of all invocations and returns."""
    # At the same time an invocation comes first: the operations are concurrent.
    times: list[tuple[float, int, int, _Entry]] = []
    for number, operation in enumerate(operations):
        entry = _Entry(operation, 1 << number)
        times.append((operation.invoked, 0, number, entry))
        if operation.returned is not None:
            entry.end = _Entry(None, entry.bit)
            times.append((operation.returned, 1, number, entry.end))
    head = last = _Entry(None, 0)
    twins: dict[Any, int] = {}
    for *_, entry in sorted(times, key=lambda item: item[:3]):
        if entry.operation is not None and entry.end is None:
            same = entry.operation[:3]
            entry.twin = twins.get(same, 0)
            twins[same] = entry.bit
        last.next = entry
        entry.before = last
        last = entry
    return head


class Stuck(NamedTuple):
    """A history that is not linearizable: the longest order that was found, and who is left."""

    order: list[Operation]
    left: list[Operation]

    def __str__(self) -> str:
        lines = ["no order explains these results; the longest one that was found:"]
        lines += [f"  {operation}" for operation in self.order]
        lines += ["cannot continue with:"]
        lines += [f"  {operation}" for operation in self.left]
        return "\n".join(lines)


def check(operations: Sequence[Operation], model: Model) -> Stuck | None:
    """Return None if the history of a key is linearizable."""
    head = _list(operations)
    todo = sum(operation.returned is not None for operation in operations)
    state: Any = model.initial
    done = 0
    seen: set[tuple[int, Hashable]] = set()
    path: list[tuple[_Entry, Any]] = []  # with the state before each
    longest: list[_Entry] = []
    entry = head.next
    while todo:
        assert entry is not None  # the return of an operation that is to be linearized
        operation = entry.operation
        if operation is None:
            # An operation has returned, and was not linearized: go back.
            if len(path) > len(longest) or not longest:
                longest = [each for each, _ in path]
            changed = False
            while path and not changed:
                entry, before = path.pop()
                changed = before != state
                state = before
                entry.put_back()
                done &= ~entry.bit
                todo += entry.end is not None
            if not changed:
                return _stuck(operations, longest)
            entry = entry.next
            continue
        ready = entry.twin & done == entry.twin
        following = model.step(state, operation) if ready else None
        key = (done | entry.bit, following)
        if following is None or key in seen:
            entry = entry.next
            continue
        seen.add(key)
        path.append((entry, state))
        state = following
        done |= entry.bit
        todo -= entry.end is not None
        entry.lift()
        entry = head.next
    return None


def _stuck(operations: Sequence[Operation], longest: list[_Entry]) -> Stuck:
    order = [entry.operation for entry in longest if entry.operation is not None]
    left = [each for each in operations if not any(each is one for one in order)]
    return Stuck(order, sorted(left, key=lambda each: each.invoked))


class Revisions:
    """A key that is written with or without an expected revision, and has one afterwards.

    write(None) -> revision       always
    write(last) -> revision       if `last` is the revision of the key
    write(last) -> REFUSED        if it is not

    `order` maps each revision to the next one, if that is known.
    """

    initial = 0

    def __init__(self, order: dict[int, int] | None = None) -> None:
        self._order = order

    def step(self, state: int, operation: Operation) -> int | None:
        """Return the revision after the operation."""
        last, result = operation.argument, operation.result
        if result == REFUSED:
            return state if state != last else None
        if last is not None and state != last:
            return None
        return result if _follows(self._order, state, result) else None


REFUSED = "refused"


def _follows(order: dict[int, int] | None, state: int, result: int) -> bool:
    """Return whether the result may come next."""
    return result > state if order is None else order.get(state) == result


class Totals:
    """A counter: add(n) returns the total afterwards, read() the total.

    An `add` without a return has no result, whether or not it took effect, unless the stream tells
    it: then `order` maps each total to the next one.
    """

    initial = 0

    def __init__(self, order: dict[int, int] | None = None) -> None:
        self._order = order

    def step(self, state: int, operation: Operation) -> int | None:
        """Return the total after the operation."""
        total: int = state + operation.argument
        if self._order is not None and self._order.get(state) != total:
            return None
        return total if operation.result in (None, total) else None


class Appends:
    """A log: append() returns the first and the last sequence of what was added.

    `order` maps each last sequence to the first one that follows, if that is known.
    """

    initial = 0

    def __init__(self, order: dict[int, int] | None = None) -> None:
        self._order = order

    def step(self, state: int, operation: Operation) -> int | None:
        """Return the last sequence after the operation."""
        first, last = operation.result
        return last if _follows(self._order, state, first) else None
