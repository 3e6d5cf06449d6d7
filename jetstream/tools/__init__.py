"""Tools for people who run and debug programs that use JetStream.

cli       the command `natsproto`
explain   sentences that explain the frames of a connection (part of the core)
otel      spans and metrics of OpenTelemetry, with the extra `otel`
prometheus  a collector for Prometheus, with the extra `prometheus`
"""
