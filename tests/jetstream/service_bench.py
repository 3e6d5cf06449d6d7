"""A blocking service on a client of one thread."""

from __future__ import annotations

from jetstream.blocking.services import add_service
from tests.jetstream.service_stage import ServiceStage


class Bench:
    """A service on a client of one thread. `script` is played while a call waits."""

    def __init__(self, start=True, **options):
        self.stage = ServiceStage(alone=True)
        options = {"name": "s", "version": "1.0.0", **options}
        self.service = add_service(self.stage.blocking, **options)
        if start:
            self.idle(9)
            self.service.start()
            self.stage.script = []

    def idle(self, turns):
        self.stage.script = [lambda: None] * turns

    def send(self, subject, data=b"", reply="r"):
        return lambda: self.stage.send(subject, data, reply)

    def stop(self):
        self.service._service.hub.begin_stop(None)

    def run(self, *script):
        self.stage.script = [*script, self.stop]
        self.service.run()
        assert self.stage.script == []
        return self.stage.answers()
