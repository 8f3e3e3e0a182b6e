"""Metrics in Prometheus's form: what is counted, from which records, and how it is written."""
