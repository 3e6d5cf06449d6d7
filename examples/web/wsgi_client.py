"""A client for web servers with threads and forked workers: gunicorn, uWSGI, Flask, Django.

The client is opened by the first request of each process, not on import: a server such as gunicorn
with `--preload` imports the application and then forks.
"""

from __future__ import annotations

import atexit
import os
import threading

from jetstream.blocking import JetStream
from natsproto.adapters.threads import connect

URL = os.environ.get("NATS_URL", "nats://127.0.0.1:4222")
_lock = threading.Lock()
_opened: dict[int, JetStream] = {}


def jetstream() -> JetStream:
    """Return JetStream of this process; its client can be used by all threads."""
    with _lock:
        js = _opened.get(os.getpid())
        if js is None:
            client = connect(URL, name="orders-web")
            atexit.register(client.close)
            js = _opened[os.getpid()] = JetStream(client)
        return js
