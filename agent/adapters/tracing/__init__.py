"""Spans by OpenTelemetry: sent over OTLP where a collector is named."""
