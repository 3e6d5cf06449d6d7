"""ServerVersion: the parts of a server's version."""

from __future__ import annotations

import re

_SEMVER = re.compile(
    r"(?P<major>\d+)\.(?P<minor>\d+)\.(?P<patch>\d+)"
    r"(?:-(?P<prerelease>[0-9A-Za-z.-]+))?(?:\+(?P<build>[0-9A-Za-z.-]+))?"
)


class ServerVersion:
    """A version, parsed when one of its parts is read; ValueError if it is not a version."""

    def __init__(self, server_version: str) -> None:
        self._server_version = server_version

    def parse_version(self) -> None:
        """Raise ValueError unless the text is a version."""
        self._part("major")

    def _part(self, name: str) -> str:
        found = _SEMVER.fullmatch(self._server_version)
        if found is None:
            raise ValueError(f"invalid server version: {self._server_version!r}")
        return found[name] or ""

    @property
    def major(self) -> int:
        """The first number."""
        return int(self._part("major"))

    @property
    def minor(self) -> int:
        """The second number."""
        return int(self._part("minor"))

    @property
    def patch(self) -> int:
        """The third number."""
        return int(self._part("patch"))

    @property
    def prerelease(self) -> str:
        """The text after the hyphen, or ""."""
        return self._part("prerelease")

    @property
    def build(self) -> str:
        """The text after the plus sign, or ""."""
        return self._part("build")

    @property
    def dev(self) -> str:
        """Everything after the three numbers: `beta+syn2`."""
        build = self.build
        return self.prerelease + ("+" + build if build else "")

    def __repr__(self) -> str:
        return f"<nats server v{self._server_version}>"
