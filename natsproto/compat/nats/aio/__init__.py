"""The names of nats-py's `nats.aio`."""
