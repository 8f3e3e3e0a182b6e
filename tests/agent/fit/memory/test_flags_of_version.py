"""A flag that one version does not take is said, not passed over."""

import pytest

from agent.fit.flags.flags import parse_flags
from agent.fit.memory.flags_of_version import missing_flags


@pytest.mark.parametrize(
    ("flags", "version", "said"),
    [
        ("--disable-log-requests", "0.28.0", "vLLM 0.28.0 has no --disable-log-requests; versions until 0.16.0 have"),
        ("--disable-log-requests", "0.16.0", None),
        ("--performance-mode throughput", "0.16.0", "vLLM 0.16.0 has no --performance-mode; 0.17.0 has"),
        ("--performance-mode throughput", "0.17.0", None),
        ("--task embed", "0.13.0", "vLLM 0.13.0 has no --task; versions until 0.12.0 have"),
        ("--no-async-scheduling", "0.8.5", "vLLM 0.8.5 has no --async-scheduling; 0.10.0 has"),
        ("--no-such-flag", "0.28.0", None),
        ("--max-model-len 4096 --tensor-parallel-size 1", "0.6.3", None),
    ],
)
def test_a_flag_is_missing_before_its_first_and_after_its_last_version(catalogue, flags, version, said):
    assert missing_flags(parse_flags(flags), catalogue.rules(version)) == ((said,) if said else ())


def test_between_two_versions_of_which_one_takes_it_nothing_is_said(catalogue):
    """0.16.0 takes --disable-log-requests, 0.17.0 does not; what a build between them does was not read."""
    assert missing_flags(parse_flags("--disable-log-requests"), catalogue.rules("0.16.1")) == ()


def test_a_version_that_was_read_stops_and_any_other_is_an_assumption(ask):
    flags = "--max-model-len 4096 --disable-log-requests"
    stopped, ran, not_told, built = (
        ask("Qwen/Qwen3-8B", "nvidia-l40s", flags, vllm=vllm) for vllm in ("0.28.0", "0.16.0", None, "0.28.1rc1.dev3")
    )
    assert (stopped.fits, stopped.reason) == (False, "unsupported")
    assert ran.fits is True
    for report in (not_told, built):
        assert report.fits is True
        assert any("has no --disable-log-requests" in note for note in report.assumptions)
