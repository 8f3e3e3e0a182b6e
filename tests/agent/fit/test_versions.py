"""An untold version widens what is printed and leaves the verdict to the newest."""

from agent.fit.versions import over_versions


def test_ranges_span_every_version_and_estimates_stay(ask):
    flags = "--gpu-memory-utilization 0.95 --max-model-len 32768 --max-num-seqs 8 --max-num-batched-tokens 4096"
    seen = {v: ask("google/gemma-4-12B-it", "nvidia-a100-80gb", flags, vllm=v) for v in ("0.25.1", "0.33.0")}
    wide = over_versions(seen["0.33.0"], list(seen.items()))
    assert wide.kv_tokens.best == seen["0.33.0"].kv_tokens.best
    assert wide.kv_tokens.high == seen["0.25.1"].kv_tokens.high
    assert wide.kv_tokens.low == seen["0.33.0"].kv_tokens.low
    assert wide.fits is seen["0.33.0"].fits
    assert any("version was not given" in told for told in wide.assumptions)


def test_versions_with_another_verdict_are_named(ask):
    flags = "--max-num-batched-tokens 32768 --max-model-len 262144 --kv-cache-memory-bytes 49G --max-num-seqs 64"
    seen = {v: ask("RedHatAI/gemma-4-31B-it-FP8-dynamic", "nvidia-h200", flags, vllm=v) for v in ("0.25.1", "0.33.0")}
    assert seen["0.25.1"].fits is True
    assert seen["0.33.0"].fits is False
    wide = over_versions(seen["0.33.0"], list(seen.items()))
    assert wide.differs_under == ("0.25.1",)
    assert "the verdict differs under vLLM 0.25.1" in wide.to_contract()["assumptions"]
