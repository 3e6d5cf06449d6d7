"""Certificates for the servers and clients of checks, issued for each run."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import trustme


class Certificates:
    """An authority, the certificates that it signed, and client contexts. Requires trustme."""

    def __init__(self, directory: Path) -> None:
        import trustme

        self._directory = directory
        self._authority = trustme.CA()
        for name, authority in [("ca", self._authority), ("stranger", trustme.CA())]:
            authority.cert_pem.write_to_path(str(directory / f"{name}.pem"))

    def server(self, *names: str, **settings: object) -> dict[str, object]:
        """Return the tls block of a server with these names and addresses."""
        cert, key = self._issue("-".join(names), *names)
        ca = str(self._directory / "ca.pem")
        return {"cert_file": cert, "key_file": key, "ca_file": ca, "timeout": 5, **settings}

    def client(self, *, certificate: bool = False) -> ssl.SSLContext:
        """Return a context that trusts the authority, with a client certificate on request."""
        context = ssl.create_default_context(cafile=str(self._directory / "ca.pem"))
        if certificate:
            context.load_cert_chain(*self._issue("client", "client.example"))
        return context

    def stranger(self) -> ssl.SSLContext:
        """Return a context that trusts another authority of the same name."""
        return ssl.create_default_context(cafile=str(self._directory / "stranger.pem"))

    def _issue(self, file: str, *names: str) -> tuple[str, str]:
        cert = self._directory / f"{file}.pem"
        key = self._directory / f"{file}.key"
        if not cert.exists():
            leaf: trustme.LeafCert = self._authority.issue_cert(*names)
            leaf.private_key_pem.write_to_path(str(key))
            leaf.cert_chain_pems[0].write_to_path(str(cert))
        return str(cert), str(key)
