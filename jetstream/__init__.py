"""JetStream on any natsproto client: streams, consumers and acknowledged publishing.

What decides anything (pulls, heartbeats, ordered resets, publish windows) is a machine without I/O,
which a natsproto connection feeds. The classes for users are written once and run on every adapter.
"""

__all__: list[str] = []
