"""Freezes natsproto and jetstream into MicroPython's firmware.

    make -C ports/rp2 BOARD=... FROZEN_MANIFEST=/path/to/manifest.py

It freezes the files that package.json lists. `python -m embedded.build OUTPUT --source` puts a copy
of it beside stripped modules, which take less flash and less memory.
"""

import json

with open("package.json") as file:
    listed = json.load(file)

metadata(version=listed["version"], description="NATS and JetStream")  # noqa: F821
for name, _ in listed["deps"]:
    require(name)  # noqa: F821
for name in ("natsproto", "jetstream"):
    files = [target[len(name) + 1 :] for target, _ in listed["urls"] if target.startswith(name)]
    package(name, files=files, opt=3)  # noqa: F821
