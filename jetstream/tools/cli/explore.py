"""explore: serve the explorer, a page that runs the core of this library in the browser."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from jetstream.tools.explore.runtime import find_fallback, find_runtime
from jetstream.tools.explore.site import build
from natsproto.cli.exits import CommandFailed

if TYPE_CHECKING:
    from natsproto.cli.commands import Commands
    from natsproto.cli.run import Session


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.command(
        "explore",
        explore,
        "Serve a page that runs the client in the browser, step by step.",
        details="It listens on 127.0.0.1 only. The first run installs MicroPython from npm.",
        live=True,
    )
    parser.add_argument("--port", type=int, default=8222, metavar="N", help="(8222); 0: any")
    parser.add_argument("--build", metavar="DIR", help="write the page there and end")
    parser.add_argument("--runtime", metavar="DIR", default="", help="folder of MicroPython")
    parser.add_argument(
        "--fallback",
        metavar="DIR",
        nargs="?",
        const="",
        help="also serve Pyodide (14 MB), for browsers that cannot load MicroPython; its folder",
    )


async def explore(session: Session) -> None:
    """Run explore."""
    args = session.args
    runtime = await asyncio.to_thread(find_runtime, args.runtime)
    fallback: Path | None = None
    if args.fallback is not None:
        fallback = await asyncio.to_thread(find_fallback, args.fallback)
    if args.build:
        build(Path(args.build), runtime, fallback)
        session.out.result({"path": args.build}, f"written to {args.build}")
        return
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), runtime, fallback)
        with _listen(folder, args.port) as server:
            url = f"http://127.0.0.1:{server.server_port}/"
            session.out.result({"url": url}, url)
            session.out.note("press Ctrl-C to stop")
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                await asyncio.Event().wait()
            finally:
                server.shutdown()
                thread.join()


class Handler(SimpleHTTPRequestHandler):
    """Serves the files of a folder, without a log."""

    # The types that browsers insist on; the registry of the system may have others.
    extensions_map: dict[str, str] = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def _listen(folder: str, port: int) -> ThreadingHTTPServer:
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=folder))
    except OSError as error:
        raise CommandFailed(f"cannot listen on port {port}: {error}") from None
