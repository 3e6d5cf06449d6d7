"""An event loop as a list: each turn resumes every task once, then runs a step of a script."""

from __future__ import annotations

import pytest


class Canceled(BaseException):
    """The exception that a loop throws into a canceled task."""


class Turn:
    """An awaitable that lets the other tasks run."""

    def __await__(self):
        yield


class TaskPort:
    """The tasks of a port."""

    async def wait(self, waitable):
        await Turn()

    async def run_all(self, workers):
        tasks = [worker() for worker in workers]
        try:
            while tasks:
                tasks = [task for task in tasks if not _has_ended(task)]
                await Turn()
        except Canceled:
            for task in tasks:
                with pytest.raises(Canceled):
                    task.throw(Canceled())
            raise

    def run(self, call, *script):
        """Run the call; after each turn in which it waits, take a step of the script."""
        steps = list(script)
        for _ in range(1000):
            if _has_ended(call):
                assert not steps
                return
            if steps:
                step = steps.pop(0)
                if step is Canceled:
                    call.throw(Canceled())
                step()
        raise AssertionError("it waits for ever")


def _has_ended(task) -> bool:
    """Resume the task for one turn."""
    try:
        task.send(None)
    except StopIteration:
        return True
    return False
