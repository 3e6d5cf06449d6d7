"""install: register the modules of this layer under nats-py's names."""

from __future__ import annotations

import importlib
import pkgutil
import sys

_HERE = __name__.rpartition(".")[0]
# Modules of the layer that nats-py does not have.
_PRIVATE = ("install",)


def install() -> None:
    """Have `import nats`, in this process, import this layer instead of nats-py.

    Call it before anything imports `nats`: raises RuntimeError if nats-py is already in use,
    because its classes would mix with those of the layer. Calling it twice is allowed.
    """
    present = sys.modules.get("nats")
    package = sys.modules[_HERE]
    if present is package:
        return
    if present is not None:
        where = getattr(present, "__file__", None) or "an unknown place"
        raise RuntimeError(
            f"nats was already imported from {where}: call natsproto.compat.nats.install() before "
            "anything imports nats"
        )
    names = [each.name for each in pkgutil.walk_packages(package.__path__, _HERE + ".")]
    for name in names:
        module = importlib.import_module(name)
        public = name[len(_HERE) + 1 :]
        if public not in _PRIVATE:
            sys.modules[f"nats.{public}"] = module
    sys.modules["nats"] = package
