"""The pipeline of the demo computes the totals of its generator."""

from __future__ import annotations

from examples.orders.generator import Totals, orders
from examples.orders.live import STREAM, Work, publish
from examples.orders.pipeline import SINK, WATERMARK, Pipeline
from jetstream.spark.compat import LIMITED

EVENTS = 5_000  # a little more than two minutes
WRAPPER = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def test_revenue_in_both_places_equals_that_of_the_generator(spark, server, js, tmp_path, request):
    js.create_stream(name=STREAM, subjects=["orders.>"])
    publish(server.url, 11, Work("publish", EVENTS))
    pipeline = Pipeline(spark, server.url, tmp_path)
    if not LIMITED:  # otherwise closed windows are not emitted: see test_examples.py
        request.addfinalizer(lambda: spark.conf.unset(WRAPPER))
        spark.conf.set(WRAPPER, "true")
    pipeline.start()
    while not pipeline.over(1.0):
        pass
    expected = Totals(orders(EVENTS, 11)).closed(WATERMARK)
    assert len(expected) == 5, "the first minute, in five regions"
    assert pipeline.stored_in_stream() == expected
    assert pipeline.stored_in_parquet() == expected
    assert pipeline.rows() == {"to a stream": EVENTS, "to Parquet": EVENTS}
    assert pipeline.count() == (EVENTS, sum(order.cents for order in orders(EVENTS, 11)))
    if LIMITED:  # the other way of the demo: queries that keep following
        again = Pipeline(spark, server.url, tmp_path, sink="AGAIN")
        again.start(follow=True)
        again.finish()
        assert again.stored_in_stream() == again.stored_in_parquet() == expected
        js.delete_stream("AGAIN")
    js.delete_stream(STREAM)
    js.delete_stream(SINK)
