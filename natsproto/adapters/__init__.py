"""Adapters: sockets, TLS, timers and wake-ups, each for one way of running Python.

`driver` and `tls` are for adapters that are written elsewhere; docs/adapters.md shows how.
"""
