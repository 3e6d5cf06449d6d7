"""A simulated server with JetStream for tests: no server, no sleeping, the same run each time.

`Simulation` is the one of natsproto.testing.sim with streams and consumers. docs/simulation.md is
the guide. Its models of pull consumers, push consumers and fast batches (pull_model, push_model,
fast_model) agree with recorded dialogues of a real server.

This package does no I/O and runs on MicroPython.
"""

from __future__ import annotations

from natsproto.testing.sim import Cancelled, ObjectAbandoned, SimulationStuck, Step, Task

from .simulation import Simulation

__all__ = [
    "Cancelled",
    "ObjectAbandoned",
    "Simulation",
    "SimulationStuck",
    "Step",
    "Task",
]
