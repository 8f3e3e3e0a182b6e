"""Secrets out of text, before anything is shown, stored or sent; pure, linear in the length of the text."""

from agent.core.redaction.redactor import Finding, Redacted, RedactedLines, Redactor
from agent.core.redaction.rules import SecretRules, ServiceName, TokenFormat

__all__ = [
    "Finding",
    "Redacted",
    "RedactedLines",
    "Redactor",
    "SecretRules",
    "ServiceName",
    "TokenFormat",
]
