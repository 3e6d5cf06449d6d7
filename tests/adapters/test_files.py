"""Files that are opened in a thread for a caller that is canceled meanwhile."""

from __future__ import annotations

import pytest

from natsproto.adapters._files import create_file, open_file
from natsproto.port import run_sync


class Canceled(BaseException):
    """What an event loop raises in a caller that is canceled."""


class Thread:
    """Calls a function while its caller is canceled: before that, or after it."""

    def __init__(self, first: bool) -> None:
        self._first = first
        self._work = None
        self.file = None

    async def run(self, work):
        self._work = work
        if self._first:
            self.file = work()
        raise Canceled

    def join(self) -> None:
        if not self._first:
            self.file = self._work()


@pytest.mark.parametrize("first", [True, False], ids=["opened before", "opened after"])
@pytest.mark.parametrize("creates", [True, False])
def test_a_canceled_caller_leaves_no_open_file(creates, first, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")
    thread = Thread(first)
    opening = create_file(thread.run, path, "token") if creates else open_file(thread.run, path)
    with pytest.raises(Canceled):
        run_sync(opening)
    thread.join()
    assert thread.file.closed
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize("creates", [True, False])
def test_an_error_of_the_system_is_raised(creates, tmp_path):
    async def run(work):
        return work()

    path = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError):
        run_sync(create_file(run, path, "token") if creates else open_file(run, path))
