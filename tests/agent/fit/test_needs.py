"""Stated needs are counted beside the start."""

from agent.fit.needs import Needs


def test_no_needs_ask_for_one_request_of_the_given_length(ask):
    flags = "--max-model-len 8192"
    assert ask("Qwen/Qwen3-8B", "nvidia-l4", flags) == ask("Qwen/Qwen3-8B", "nvidia-l4", flags, needs=Needs())


def test_more_users_than_the_pool_holds_do_not_fit(ask):
    report = ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192", needs=Needs(users=50))
    assert (report.fits, report.reason) == (False, "one_request")


def test_a_context_over_the_configured_one_is_refused(ask):
    report = ask("Qwen/Qwen3-8B", "nvidia-l4", "--max-model-len 8192", needs=Needs(context_tokens=16384))
    assert (report.fits, report.reason) == (False, "unsupported")
    assert any("needed context" in told for told in report.assumptions)
