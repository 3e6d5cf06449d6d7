"""A simulated network for tests: no server, no sleeping, and the same run for the same seed.

`Simulation` runs a program and its clients on simulated time, against a simulated server that
passes messages on. jetstream.testing.sim has one with JetStream. docs/simulation.md is the guide.

This package does no I/O and runs on MicroPython.
"""

from __future__ import annotations

from .rng import Rng
from .simulation import ObjectAbandoned, Simulation, SimulationStuck
from .steps import Step
from .tasks import Cancelled, Task

__all__ = [
    "Cancelled",
    "ObjectAbandoned",
    "Rng",
    "Simulation",
    "SimulationStuck",
    "Step",
    "Task",
]
