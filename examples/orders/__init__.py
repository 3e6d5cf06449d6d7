"""A shop's orders: published, consumed live on three runtimes, and summed up by Spark.

Run it with `python -m examples.orders`; `make demo` does.
"""
