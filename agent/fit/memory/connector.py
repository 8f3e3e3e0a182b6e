"""KV connectors, which keep or send the cache elsewhere: what they take on the device beside it.

Source: vllm/distributed/kv_transfer/kv_connector/v1 (lmcache_integration/vllm_v1_adapter.py, nixl, offloading), the
hybrid manager in vllm/config/vllm.py and kv_offloading_size of 0.33.0; vllm/config.py of 0.9.2; read 2026-11-26;
lmcache_mp_connector.py and lmcache_integration/multi_process_adapter.py of 0.12.0 to 0.33.0, and the former as LMCache
0.5.6 brings it (nothing of its own on the device), read 2026-11-27.
"""

from __future__ import annotations

from dataclasses import replace

from agent.fit.bounds import GIB, NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import ModelFacts
from agent.fit.version_rules import VersionRules

_OFFLOADING = frozenset({"kv-offloading-size", "kv-offloading-backend"})
_NAMES = _OFFLOADING | {"kv-transfer-config"}
_IN_HOST_MEMORY = frozenset({
    "LMCacheConnectorV1", "LMCacheMPConnector", "NixlConnector", "OffloadingConnector", "SimpleCPUOffloadConnector",
    "SharedStorageConnector", "ExampleConnector",
})  # fmt: skip
"""Connectors that stage a few chunks on the device at most; others bring pools of their own."""

_WITHOUT_HYBRID = frozenset({"LMCacheConnectorV1"})
_IN_ANOTHER_PROCESS = "LMCacheMPConnector"
_MODULE, _OF_LMCACHE = "kv_connector_module_path", "lmcache.integration.vllm."
_FROM, _OFFLOADING_FROM, _ASKED_FROM = (0, 9), (0, 12), (0, 22)
_STAGED = Bounds(low=0, best=0, high=GIB)
"""Chunks that are staged, and the contexts of the libraries that move them; none was recorded."""

_BESIDE_SERVER = Bounds(low=0, best=0, high=3 * GIB)
"""The same where LMCache's own server opens the cache on the device: its context is one more, assumed."""


def as_connected(flags: Flags, rules: VersionRules) -> Flags:
    """The flags, the manager of hybrid caches off where the connector switches it off and none asked to keep it.

    Source: vllm/config/vllm.py of 0.22.1 1440-1478: connectors that are no ``SupportsHMA``, as LMCacheConnectorV1;
    "because `--kv-transfer-config` is set" until 0.21.0, whichever it is; read 2026-11-26.
    """
    if flags.disable_hybrid_kv_cache_manager is not None or not flags.asks_for(_NAMES):
        return flags
    name = _connector(flags)
    early = rules.numbers < _ASKED_FROM and flags.untyped("kv-transfer-config") is not None
    is_off = name in _WITHOUT_HYBRID or (early and name in _IN_HOST_MEMORY)
    return replace(flags, disable_hybrid_kv_cache_manager=True) if is_off else flags


def flags_counted(model: ModelFacts, flags: Flags, rules: VersionRules) -> frozenset[str]:
    """Names of the flags about connectors that are counted.

    Most connectors switch the manager of hybrid caches off, which changes nothing where all layers cache alike.
    """
    caching = [layer for layer in model.layers if layer.owns_kv]
    alike = len({(layer.kind, layer.window_tokens, layer.kv_heads, layer.head_dim) for layer in caching}) == 1
    same_pages = len({(layer.kv_heads, layer.head_dim) for layer in caching}) == 1
    read_from = _OFFLOADING_FROM if flags.asks_for(_OFFLOADING) else _FROM
    counted = alike or (same_pages and bool(flags.disable_hybrid_kv_cache_manager))
    counted = counted and rules.numbers >= read_from and not rules.is_v0
    counted = counted and all(layer.recurrent is None for layer in caching)
    return _NAMES if counted and _connector(flags) in _IN_HOST_MEMORY else frozenset()


def staged_bytes(flags: Flags) -> Bounds:
    """What a connector takes beside the cache, bytes per device."""
    if not flags.asks_for(_NAMES):
        return NOTHING
    return _BESIDE_SERVER if _connector(flags) == _IN_ANOTHER_PROCESS else _STAGED


def _connector(flags: Flags) -> str:
    """The connector that is asked for; "" where it is not known, or its flags are none that vLLM takes."""
    asked = flags.json_object("kv-transfer-config")
    if asked is None or any(flags.asks_for({name}) and flags.untyped(name) is None for name in _OFFLOADING):
        return ""
    if (flags.untyped("kv-offloading-backend") or "native") != "native":
        return ""
    if not flags.asks_for({"kv-transfer-config"}):
        return "OffloadingConnector"
    extra = asked.get("kv_connector_extra_config") or {}
    if not isinstance(extra, dict) or any(key.endswith("module_path") for key in (*asked.keys() - {_MODULE}, *extra)):
        return ""  # code of the user's own
    if not str(asked.get(_MODULE, _OF_LMCACHE)).startswith(_OF_LMCACHE):
        return ""
    return str(asked.get("kv_connector", ""))
