"""Errors of load generators in few words."""

import pytest

from agent.adapters.load.request_errors import CHARS, error_kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "HTTPStatusError(\"Client error '429 Too Many Requests' for url 'http://h/v1'\\nFor more: x/429\")",
            "HTTP 429",
        ),
        ("Unauthorized", "HTTP 401"),
        ("Not Found", "HTTP 404"),
        ("ConnectError('All connection attempts failed')", "connection refused"),
        ("Cannot connect to host 127.0.0.1:1 ssl:default [Connect call failed]", "connection refused"),
        ("RemoteProtocolError('peer closed connection without sending complete message body')", "connection closed"),
        ("ValueError('[UNUSABLE_BACKEND_RESPONSE] backend resolved with empty response payload')", "unreadable answer"),
        ("Never received a valid chunk to calculate TTFT.This response will be marked as failed!", "unreadable answer"),
        ("JSONDecodeError('Expecting value')", "unreadable answer"),
        ("ReadTimeout('')", "timeout"),
        ("something\n else  \x1b", "something else \x1b"),
        ("", "unknown error"),
    ],
)
def test_both_generators_end_in_the_same_words(text: str, kind: str) -> None:
    """Texts as guidellm 0.8.1 and vllm 0.32.0 gave them."""
    assert error_kind(text) == kind


def test_a_long_text_is_cut() -> None:
    """One kind stays one line."""
    assert len(error_kind("x" * 9999)) == CHARS
