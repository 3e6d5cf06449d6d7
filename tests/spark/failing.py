"""A source whose first tasks fail or stop in the middle of a range; workers import it by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetstream.spark import JetStreamDataSource
from tests.spark.gates import pass_gate

if TYPE_CHECKING:
    from collections.abc import Iterator


def fail_once(name: str, how: str) -> None:
    """Fail the first time; `how`: raised, killed, executor, or the port of a gate to wait at."""
    flag = Path(name)
    if not flag.exists():
        flag.touch()
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "executor":
            kill_executor()
        if not how.isdigit():
            raise RuntimeError("a task that fails once")
        pass_gate(int(how))


def kill_executor() -> None:
    """Kill the executor of a task, the grandparent of its process."""
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)


def failing(reader: Any, flag: str, how: str) -> Any:
    """Make `read` fail after its first record batch, once per partition."""

    class Failing(type(reader)):  # type: ignore[misc]
        def read(self, partition: Any) -> Iterator[Any]:
            for number, batch in enumerate(super().read(partition)):
                if number == 1:
                    fail_once(f"{flag}-{partition.start}", how)
                yield batch

    reader.__class__ = Failing
    return reader


class FailingDataSource(JetStreamDataSource):
    """The source with additional options `flag` and `how`."""

    @classmethod
    def name(cls) -> str:
        return "failing_jetstream"

    def schema(self) -> str:
        return self._without()[0].schema()

    def _without(self) -> tuple[JetStreamDataSource, str, str]:
        options = {key.lower(): value for key, value in self.options.items()}
        flag, how = options.pop("flag"), options.pop("how")
        return JetStreamDataSource(options), flag, how

    def reader(self, schema: Any) -> Any:
        source, flag, how = self._without()
        return failing(source.reader(schema), flag, how)

    def streamReader(self, schema: Any) -> Any:
        source, flag, how = self._without()
        return failing(source.streamReader(schema), flag, how)
