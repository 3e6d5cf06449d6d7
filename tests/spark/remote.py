"""A driver of its own: calls functions with its session, as it is told by lines of JSON.

{"call": "module:function", "with": {...}}   is answered by   {"value": ...} or {"error": ...}
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from tests.spark.conftest import start_session

ANSWER = "answer: "  # Spark writes to this output, too


def main() -> None:
    order = json.loads(sys.argv[1])
    spark = start_session(Path(order["directory"]), **order["settings"])
    for line in sys.stdin:
        order = json.loads(line)
        module, _, name = order["call"].partition(":")
        answer: dict[str, Any] = {}
        try:
            function = getattr(importlib.import_module(module), name)
            answer["value"] = function(spark, **order["with"])
        except Exception:
            answer["error"] = traceback.format_exc()
        print(ANSWER + json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
