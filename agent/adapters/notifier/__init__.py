"""Notifiers: Slack, signed webhooks, PagerDuty, and services that only take messages."""
