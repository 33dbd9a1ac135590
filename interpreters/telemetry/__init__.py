"""A log as spans and metrics, for OpenTelemetry: pure folds over its entries, and a writer beside them.

``identifiers`` derives the identifiers, ``spans`` has the spans as plain values, ``system_spans`` and ``fleet_spans``
fold a log into them, ``metrics`` counts. Only ``otlp`` uses the libraries of OpenTelemetry (extra ``otel``).
"""
