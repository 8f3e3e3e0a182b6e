"""Notifiers: Slack and signed webhooks."""
