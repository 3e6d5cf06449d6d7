"""Serve the chat page to browsers: `python examples/browser/serve.py node_modules/pyodide`.

The argument is the directory that `npm install pyodide` creates. A nats-server with a WebSocket is
started as well, by the extra `server` of natsproto.
"""

from __future__ import annotations

import io
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from natsproto.testing import Server, free_port

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TYPES = {".html": "text/html", ".mjs": "text/javascript", ".wasm": "application/wasm"}


class Site(ThreadingHTTPServer):
    """The files of this directory, those of Pyodide, and the packages for it."""

    def __init__(self, pyodide: Path, home: Path = HERE) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folders = {"pyodide": pyodide, "": home}
        self.packages = pack("natsproto", "jetstream")
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def find(self, path: str) -> bytes | None:
        """Return the content at a path; None if there is none."""
        if path == "natsproto.zip":
            return self.packages
        folder, _, name = path.rpartition("/")
        if folder not in self.folders or not (self.folders[folder] / name).is_file():
            return None
        return (self.folders[folder] / name).read_bytes()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        path = self.path.partition("?")[0].lstrip("/") or "index.html"
        assert isinstance(self.server, Site)
        content = self.server.find(path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Type", TYPES.get(Path(path).suffix, "application/octet-stream"))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *args: object) -> None:
        pass


def pack(*packages: str) -> bytes:
    """Return a ZIP file with these packages. An installed program would use the wheel."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in packages:
            for path in sorted((ROOT / package).rglob("*.py")):
                archive.write(path, path.relative_to(ROOT))
    return data.getvalue()


def main(pyodide: str) -> None:
    websocket = {"listen": f"127.0.0.1:{free_port()}", "no_tls": True}
    config = {"websocket": websocket}
    with Server(jetstream=True, config=config) as server, Site(Path(pyodide)) as site:
        print(f"Open {site.url}/?server={server.urls['websocket']}; Enter ends it.")
        input()
        site.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
