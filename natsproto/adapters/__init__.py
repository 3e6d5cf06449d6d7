"""Adapters: sockets, TLS, timers and wake-ups for one way of running Python each.

docs/adapters.md teaches how to write another one.
"""
