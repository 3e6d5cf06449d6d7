"""A plugin for pytest that has a suite of another project run on natsproto.compat.nats.

`PYTHONPATH=tests/compat/plugin pytest -p on_natsproto` loads it before any test imports `nats`.
"""

from __future__ import annotations

import natsproto.compat.nats as layer

layer.install()
# nats-py's tests of nkeys name `tls://` URLs of servers without TLS.
layer.NATS.require_tls_of_urls = False
