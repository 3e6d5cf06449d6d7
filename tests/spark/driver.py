"""A driver in a separate process, which tests kill: it runs a query from a stream to files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.spark.conftest import start_session


def main() -> None:
    order = json.loads(sys.argv[1])
    directory = Path(order["directory"])
    spark = start_session(directory / "session", **{"spark.log.level": "INFO"})
    frame = spark.readStream.format("jetstream").options(**order["options"]).load()
    query = (
        frame.select("sequence")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .option("path", str(directory / "rows"))
        .start()
    )
    reported = -1
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and progress["batchId"] != reported:
            reported = progress["batchId"]
            print("batch", reported, flush=True)
        query.awaitTermination(0.1)


if __name__ == "__main__":
    main()
