"""KV connectors: which are counted, and where they change how the cache is laid out."""

import pytest

LMCACHE = """--kv-transfer-config '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'"""
LMCACHE_SERVER = (
    """--kv-transfer-config '{"kv_connector":"LMCacheMPConnector","kv_role":"kv_both","""
    """"kv_connector_module_path":"lmcache.integration.vllm.lmcache_mp_connector"}'"""
)
NIXL = """--kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'"""


@pytest.mark.parametrize(
    ("asked", "vllm"),
    [
        (LMCACHE, "0.9.0"),
        (NIXL, "0.27"),
        ("--kv-offloading-size 64", "0.33"),
        (LMCACHE, "0.33"),
        (LMCACHE_SERVER, "0.28"),
    ],
)
def test_a_cache_that_is_kept_in_host_memory_leaves_the_device_nearly_alone(ask, asked, vllm):
    """Recorded: Qwen 2.5 72B over four H100 with LMCache (0.9.0) ran."""
    flags = "--tensor-parallel-size 4 --gpu-memory-utilization 0.9 --max-model-len 32768 --max-num-seqs 64"
    plain, kept = (
        ask("Qwen/Qwen2.5-72B-Instruct", "nvidia-h100-80gb", f"{flags} {more}", vllm=vllm) for more in ("", asked)
    )
    assert (plain.fits, kept.fits) == (True, True)
    assert kept.kv_cache_bytes.best == plain.kv_cache_bytes.best
    assert kept.kv_cache_bytes.low < plain.kv_cache_bytes.low


@pytest.mark.parametrize(
    ("model", "asked", "vllm"),
    [
        pytest.param("google/gemma-3-12b-it", NIXL, "0.27", id="windows-beside-full-attention"),
        pytest.param("Qwen/Qwen3.5-9B", NIXL, "0.27", id="recurrent-layers"),
        pytest.param(
            "Qwen/Qwen3-8B", """--kv-transfer-config '{"kv_connector":"P2pNcclConnector"}'""", "0.27", id="a-pool"
        ),
        pytest.param("Qwen/Qwen3-8B", "--kv-transfer-config {not-json", "0.27", id="no-object"),
        pytest.param("Qwen/Qwen3-8B", NIXL, "0.8.5", id="an-older-engine"),
        pytest.param("Qwen/Qwen3-8B", "--kv-offloading-size 8 --kv-offloading-backend lmcache", "0.33", id="a-process"),
        pytest.param("Qwen/Qwen3-8B", f"{NIXL} --kv-offloading-backend lmcache", "0.33", id="a-process-instead"),
        pytest.param("Qwen/Qwen3-8B", "--kv-offloading-size", "0.33", id="no-size"),
        pytest.param("Qwen/Qwen3-8B", "--kv-transfer-config", "0.33", id="no-config"),
        pytest.param("Qwen/Qwen3-8B", f"--kv-transfer-config '{'[' * 100_000}'", "0.33", id="deep"),
        pytest.param(
            "Qwen/Qwen3-8B",
            """--kv-transfer-config '{"kv_connector":"NixlConnector","kv_connector_module_path":"mine"}'""",
            "0.33",
            id="code-of-the-users-own",
        ),
    ],
)
def test_what_was_not_read_is_cannot_tell(ask, model, asked, vllm):
    report = ask(model, "nvidia-h100-80gb", f"--max-model-len 8192 {asked}", vllm=vllm)
    assert report.fits is None
    assert any("is not modelled" in told for told in report.assumptions)


def test_a_version_that_lacks_the_flag_is_refused(ask):
    report = ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", "--max-model-len 8192 --kv-offloading-size 8", vllm="0.11.0")
    assert (report.fits, report.reason) == (False, "unsupported")


@pytest.mark.parametrize(("asked", "vllm"), [(LMCACHE, "0.27"), (NIXL, "0.21")])
@pytest.mark.parametrize("model", ["openai/gpt-oss-20b", "google/gemma-3-12b-it"])
def test_windows_keep_every_token_where_the_connector_switches_the_hybrid_manager_off(ask, model, asked, vllm):
    flags = "--max-model-len 8192 --max-num-seqs 64"
    off, kept = (
        ask(model, "nvidia-h100-80gb", f"{flags} {more}", vllm=vllm)
        for more in ("--disable-hybrid-kv-cache-manager", asked)
    )
    assert kept.fits is True
    assert kept.kv_bytes_per_request == off.kv_bytes_per_request


def test_recurrent_layers_are_refused_by_a_connector_that_switches_the_hybrid_manager_off(ask):
    report = ask("Qwen/Qwen3.5-9B", "nvidia-h100-80gb", f"--max-model-len 8192 {LMCACHE}", vllm="0.21.0")
    assert report.fits is False
    assert any("a connector that implies it" in told for told in report.assumptions)
