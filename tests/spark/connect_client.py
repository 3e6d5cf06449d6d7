"""A client of Spark Connect in a separate process: it reads, writes, and prints JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.errors import PySparkException

from tests.spark.conftest import start_session


def main() -> None:
    url, stream, directory = sys.argv[1:]
    home = Path(directory)
    spark = start_session(home / "session", remote=True)
    options = {"servers": url, "stream": stream}
    found: dict[str, object] = {"session": type(spark).__module__}

    rows = spark.read.format("jetstream").options(**options).load()
    found["read"] = [[row.sequence, row.data.decode()] for row in rows.collect()]

    numbers = spark.range(0, 1000, 1, 2).selectExpr("CAST(id AS STRING) AS data")
    writer = numbers.write.format("jetstream").mode("append")
    writer.options(**options, subject=f"{stream}.written").save()

    frame = spark.readStream.format("jetstream").options(**options)
    frame = frame.options(startingOffsets="earliest", maxMessagesPerTrigger="500").load()
    query = (
        frame.selectExpr("data", f"'{stream}OUT' AS subject")
        .writeStream.queryName("copies")
        .format("jetstream")
        .options(servers=url, stream=f"{stream}OUT")
        .option("checkpointLocation", str(home / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found["batches"] = [each.sources[0].numInputRows for each in query.recentProgress]

    try:
        spark.read.format("jetstream").options(**options, startingOffset="1").load().collect()
    except PySparkException as error:
        found["error"] = str(error)
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
