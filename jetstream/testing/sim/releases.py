"""Release: what a release of nats-server does differently from others, as far as clients see it.

Recordings of each release prove the table (tests/vectors/releases): the same frames get the same
answers from the model and from the server.
"""

from __future__ import annotations

TYPE_CHECKING: bool = False
if TYPE_CHECKING:
    from typing import Any

_INLINE = b"NATS/1.0 "


class Release:
    """One release: its version, its API level, and its habits."""

    __slots__ = (
        "answers_absent",
        "counts_early",
        "gets_batches",
        "keeps_status_lines",
        "level",
        "looks_at_subject",
        "moves_start",
        "refuses_aloud",
        "starts_floor",
        "times_out_part",
        "version",
    )

    def __init__(self, version: str, level: int, **habits: bool) -> None:
        self.version: str = version
        self.level: int = level
        #: A pull of a consumer that does not exist is answered with 503; otherwise not at all.
        self.answers_absent: bool = habits.get("answers_absent", True)
        #: A pull above max_waiting is answered with 409 even if it has heartbeats.
        self.refuses_aloud: bool = habits.get("refuses_aloud", False)
        #: A no_wait pull that has brought messages ends with 408, not 404.
        self.times_out_part: bool = habits.get("times_out_part", False)
        #: A stored message keeps the status line that its publisher wrote.
        self.keeps_status_lines: bool = habits.get("keeps_status_lines", False)
        #: Direct get returns several messages.
        self.gets_batches: bool = habits.get("gets_batches", True)
        #: A publish may expect the last sequence of another subject.
        self.looks_at_subject: bool = habits.get("looks_at_subject", True)
        #: A start after the end of the stream is moved to its end.
        self.moves_start: bool = habits.get("moves_start", False)
        #: Messages before the start of a consumer count as pending: no_wait pulls wait for them.
        self.counts_early: bool = habits.get("counts_early", False)
        #: The ack floor of a new consumer is before its start; otherwise 0.
        self.starts_floor: bool = habits.get("starts_floor", True)

    def stored_block(self, block: bytes | None) -> bytes | None:
        """Return the headers that a stream stores."""
        if block is None or self.keeps_status_lines or not block.startswith(_INLINE):
            return block
        rest = block[block.find(b"\r\n") :]
        return None if rest == b"\r\n\r\n" else b"NATS/1.0" + rest

    def info(self, name: str = "simulated") -> bytes:
        """Return how a server of this release introduces itself."""
        level = ',"api_lvl":%d' % self.level if self.level > 1 else ""
        return (
            'INFO {"server_id":"SIMULATED","server_name":"%s","version":"%s","proto":1,'
            '"headers":true,"jetstream":true%s,"max_payload":1048576} \r\n'
            % (name, self.version, level)
        ).encode()


#: The releases that are modeled, the newest first.
RELEASES: list[Release] = [
    Release("2.15.1", 5),
    Release(
        "2.12.0",
        2,
        times_out_part=True,
        keeps_status_lines=True,
        counts_early=True,
        starts_floor=False,
    ),
    Release(
        "2.10.25",
        0,
        answers_absent=False,
        refuses_aloud=True,
        times_out_part=True,
        keeps_status_lines=True,
        gets_batches=False,
        looks_at_subject=False,
        moves_start=True,
        starts_floor=False,
    ),
]
NEWEST: Release = RELEASES[0]


def find_release(version: str) -> Release:
    """Return the release with this version, or the newest one of these minor releases.

    "2.10" is the modeled release of 2.10. Raises ValueError if there is none.
    """
    for release in RELEASES:
        if release.version == version or release.version.startswith(version + "."):
            return release
    known = ", ".join([release.version for release in RELEASES])
    raise ValueError("no simulated server has version %r; these have: %s" % (version, known))


def release_of(config: dict[str, Any]) -> Release:
    """Return the release in the configuration of a model; the newest one if none is given."""
    release: Release = config.get("release") or NEWEST
    return release
