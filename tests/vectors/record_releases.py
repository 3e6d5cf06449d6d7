"""Record how each release of nats-server answers: `python -m tests.vectors.record_releases`.

    python -m tests.vectors.record_releases            # every release in RELEASES
    python -m tests.vectors.record_releases 2.12.0     # only this one
    python -m tests.vectors.record_releases --check    # compare with the recordings, write nothing

A script (release_scripts.py) is a list of steps: a frame that a client sends, and how long it then
listens. The recording has the frames that arrived meanwhile. What differs from run to run is
replaced (times, tokens, the name of the server), and of the API's responses only the fields remain
that the model of the simulation has, so that a second run writes the same file.
tests/sim/test_releases.py replays the recordings against the models.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from natsproto import Parser
from natsproto.adapters.asyncio import connect
from natsproto.testing import Server
from natsproto.wire.frames import Msg
from tests.vectors.release_scripts import SCRIPTS, Step
from tests.versions import find_binary

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The oldest release on PyPI, the last one that passes stored status lines on, and the newest.
RELEASES = ("2.10.25", "2.12.0", "2.15.1")
HOME = Path(__file__).with_name("releases")
CONNECT = (
    b'CONNECT {"verbose":false,"protocol":1,"headers":true,"no_responders":true,"echo":true}\r\n'
)
STORED_AT = b"1794786870000000000"  # as in jetstream.testing.sim.pull_model
_ACK = re.compile(rb"^(\$JS\.ACK\.\S+\.\d+\.\d+\.\d+\.)\d{19}(\.\d+)$")
_TIME = re.compile(r"(Nats-Time-Stamp: )\S+")
_FIELDS = {
    "state": ("messages", "first_seq", "last_seq", "num_subjects", "num_deleted", "consumer_count"),
    "delivered": ("consumer_seq", "stream_seq"),
    "ack_floor": ("stream_seq",),
    "message": ("subject", "seq", "data", "hdrs"),
    "error": ("code", "err_code", "description"),
}
_PLAIN = (
    *("num_ack_pending", "num_redelivered", "num_waiting", "num_pending", "name", "total"),
    *("success", "purged", "did_create", "stream", "seq", "duplicate"),
)


def summary(data: bytes) -> Any:
    """Return what the model has of a response of the API; None if it is not one."""
    try:
        answer = json.loads(data)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    found = {name: answer[name] for name in _PLAIN if answer.get(name)}
    for name, fields in _FIELDS.items():
        if isinstance(answer.get(name), dict):
            found[name] = {each: answer[name].get(each, 0) for each in fields}
    return found


def shape(frame: Msg) -> list[Any]:
    """Return a message as it is recorded: subject, reply, headers, and data or a summary of it."""
    reply = _ACK.sub(rb"\g<1>" + STORED_AT + rb"\g<2>", frame.raw_reply).decode()
    block = (frame.raw_headers or b"").decode("latin-1")
    data: Any = frame.data.decode("latin-1")
    if ".api" in frame.subject:
        data = summary(frame.data) or data
    return [frame.subject, reply, _TIME.sub(r"\1-", block), data]


def shapes(frames: Iterable[object]) -> list[list[Any]]:
    """Return the messages among frames as they are recorded.

    Responses of the API come first: whether they overtake messages is a matter of chance.
    """
    found = [shape(frame) for frame in frames if isinstance(frame, Msg)]
    return sorted(found, key=lambda each: ".api" not in each[0])


async def play(url: str, steps: list[Step]) -> list[dict[str, Any]]:
    """Run a script against a server; return its steps with what arrived."""
    host, port = url.rpartition("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    parser = Parser()
    arrived: list[object] = []

    async def read() -> None:
        while data := await reader.read(65536):
            arrived.extend(parser.feed(data))

    reading = asyncio.create_task(read())
    writer.write(CONNECT)
    found = []
    try:
        for step in steps:
            writer.write(step.frame)
            await asyncio.sleep(step.listen)
            got = shapes(arrived)
            arrived.clear()
            found.append({"send": step.frame.decode("latin-1"), "listen": step.listen, "got": got})
    finally:
        reading.cancel()
        writer.close()
    return found


async def _play_all(url: str) -> dict[str, list[dict[str, Any]]]:
    played = await asyncio.gather(*(play(url, steps) for steps in SCRIPTS.values()))
    async with connect(url) as client:
        assert client.info is not None
        introduction = {"version": client.info.version, "level": client.info.api_lvl}
    return {"INFO": [introduction], **dict(zip(SCRIPTS, played))}


def record(binary: str | None = None) -> dict[str, Any]:
    """Run all scripts on one server, at the same time; return the recording."""
    with Server(jetstream=True, binary=binary) as server:
        return asyncio.run(_play_all(server.url))


def read_recording(release: str) -> dict[str, Any]:
    """Return the recording of a release."""
    recording: dict[str, Any] = json.loads((HOME / f"{release}.json").read_text(encoding="utf-8"))
    return recording


def _write(recording: dict[str, Any]) -> str:
    """Return the text of a recording, with a line for each step."""
    scripts = []
    for name, steps in recording.items():
        lines = ",\n  ".join(json.dumps(step) for step in steps)
        scripts.append(f"{json.dumps(name)}: [\n  {lines}\n ]")
    return "{\n " + ",\n ".join(scripts) + "\n}\n"


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return the first step of each script in which two recordings differ."""
    found = []
    for name in sorted({*before, *now}):
        pairs = zip(before.get(name, [None]), now.get(name, [None]))
        different = [f"{name}: {old} is now {new}" for old, new in pairs if old != new]
        found.extend(different[:1])
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.vectors.record_releases")
    parser.add_argument("releases", nargs="*", default=RELEASES)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args(arguments)
    bad = 0
    for release in options.releases:
        recording = record(find_binary(release))
        if not options.check:
            (HOME / f"{release}.json").write_text(_write(recording), encoding="utf-8")
            continue
        for line in differences(read_recording(release), recording):
            print(f"{release}, {line}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
