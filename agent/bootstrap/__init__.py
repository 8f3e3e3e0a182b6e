"""The composition root: reads the data once, chooses the adapters, and hands each function its world."""

from agent.bootstrap.known import (
    faster,
    knowledge,
    matcher,
    read_policy,
    read_services,
    receipt_key,
    redact,
    redactor,
    service_fits,
    titles,
)
from agent.bootstrap.local import embedded, in_memory, worker
from agent.bootstrap.model_classifier import ModelClassifier, model_classifier
from agent.bootstrap.outfit import Installation, Outfit
from agent.bootstrap.owned import Desk, desk, installation, machine_clock, publisher
from agent.bootstrap.people import decider_secrets, notifiers, operator_token, slack_reply, slack_secret
from agent.bootstrap.place import cloud_log_entries

__all__ = [
    "Desk",
    "Installation",
    "ModelClassifier",
    "Outfit",
    "cloud_log_entries",
    "decider_secrets",
    "desk",
    "embedded",
    "faster",
    "in_memory",
    "installation",
    "knowledge",
    "machine_clock",
    "matcher",
    "model_classifier",
    "notifiers",
    "operator_token",
    "publisher",
    "read_policy",
    "read_services",
    "receipt_key",
    "redact",
    "redactor",
    "service_fits",
    "slack_reply",
    "slack_secret",
    "titles",
    "worker",
]
