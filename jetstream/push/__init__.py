"""Push consumers: the machine, its liveness probe and its messages."""
