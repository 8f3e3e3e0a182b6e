"""Activations, non-torch memory and CUDA graphs: calibrated on recorded start-ups, always with bounds."""

from __future__ import annotations

from agent.fit.bounds import GIB, MIB, NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective
from agent.fit.memory.compressed import compressed_peak
from agent.fit.memory.encoders import (
    PROCESSOR,
    UNEXPLAINED_VIDEO,
    WIDEST_VIDEO,
    encoder_peak,
    unseen_peak,
    whole_video,
)
from agent.fit.memory.kv_cache import own_mtp
from agent.fit.memory.second_runner import compiled_peak
from agent.fit.memory.v0_engine import SORTED_BYTES_PER_LOGIT, profile_peak
from agent.fit.model_and_hardware import (
    AcceleratorFacts,
    AcceleratorKind,
    AttentionKind,
    ModelFacts,
)
from agent.fit.version_rules import VersionRules

SAMPLER_BYTES_PER_LOGIT = 14.5
_SURE_OF_LOGITS = 4
"""Bytes a logit that Model Runner V2 was seen to take at least: 1.65 GiB with libraries and graphs for 1,024 sequences
of Qwen3 32B over two cards of 95 GiB (0.27.1)."""

_SURE = 0.6
"""The share of a computed peak that every start-up with given sequences took at least."""

_SURE_OF_ENCODER = 0.7
"""The same of an encoder's, which no flag about sequences changes."""

_TOOK_LESS_FROM = (0, 12)
"""From when a start-up at the default of 1,024 sequences took less than its sampler (two H100, 0.14.1; its flags are
not stated). Before, FlashInfer's sampler holds 10 bytes a logit where it is installed: the logits, a copy in float32
and its softmax (vllm/v1/sample/sampler.py and ops/topk_topp_sampler.py of 0.8.3 to 0.11.0, read 2026-11-27)."""

_HOPPER = (9, 0)
_BLACKWELL = (10, 0)
_MOST_MULTIPROCESSORS = 192
_WHOLE_STEP_FROM = (0, 18)
_SMALL_CHUNK_FROM = (0, 11, 1)
_CHUNK = 16 * 1024
_GRAPH_LAYERS = 32
"""Depth of the models on which the graphs' cost per captured size was calibrated."""

_MOST, _MOST_BY_EIGHTS = 1.35, 1.6
"""How many times its best estimate a graph may take."""

_FLASH_2_LAYERS = 36
"""Depth of the models whose FlashAttention 2 buffers were recorded."""

_SHARE_BEYOND, _GROWS_LESS_FROM = 0.25, (0, 17)
"""How much of that a layer beyond this depth adds, and since which version."""

_BUFFERS_OF_EMBEDDINGS = 8
"""At most, of a whole batch beside a tower: its output and the inputs of the first layer, each with three deep layers.

A 27B with its tower printed 3.0 GiB at 2,048 batched tokens and 1.42 at 16,384 (0.27.1), of which the layers themselves
explain 0.25. Source of the buffers: Qwen3VLForConditionalGeneration in vllm/model_executor/models/qwen3_vl.py, version
0.17.0, read 2026-11-27.
"""

_DRAFTLESS = frozenset({"ngram", "ngram_gpu", "suffix"})


SOURCE = (
    "activations, non-torch memory and graphs: calibrated on recorded start-ups (residual = budget - weights - pool), "
    "bounds cover them; not derived"
)


def activation_peak(
    model: ModelFacts, flags: Flags, run: Effective, rules: VersionRules, *, sampled: int | None = None
) -> Bounds:
    """Highest activation of the profile run over the weights, bytes per device.

    The largest of three passes counts: the encoder over a full batch of items, the widest feed-forward of one step, and
    the sampler over ``max_num_seqs`` rows of logits. Calibration: 14.5 bytes per logit, 0.63 GiB per encoder batch,
    four feed-forward buffers; 0.1 GiB for everything else. The low end goes further down where the number of sequences
    is a default: that is the flag which recorded commands most often leave out. Pooling models sample nothing.

    Args:
        model: Its widest layer, vocabulary and towers.
        flags: Tensor parallelism and what is profiled.
        run: Batch and sequences.
        rules: Whether the version's default installation sorts logits in PyTorch, which the high end counts; the V0
            engine samples otherwise.
        sampled: What sampling takes where Model Runner V2 serves; the high end covers the other runner where tokens
            are guessed or the version was not read.
    """
    batch = run.max_num_batched_tokens
    widest = max(
        max(
            layer.intermediate,
            layer.active_experts * (layer.expert_shape or (0, layer.expert_intermediate))[1]
            + layer.shared_intermediate,
            model.hidden,
        )
        for layer in model.layers
    )
    forward = 4 * batch * widest * 2 // flags.tp
    routed = experts_workspace(model, flags, batch * replicas(model, flags), rules)
    gathered = (replicas(model, flags) - 1) * forward
    if rules.is_v0:
        return profile_peak(forward, _logits(model, run), flags, rules)
    sampler = int(SAMPLER_BYTES_PER_LOGIT * _logits(model, run))
    pools = flags.pools or "embedding" in model.name.lower()
    encoder, video = encoder_peak(model, flags, run), whole_video(model, flags, rules, length=run.max_model_len)
    best = max(max(forward, routed, sampler if sampled is None else sampled) + video, encoder) + GIB // 10
    least = _SURE if flags.max_num_seqs is not None else 0.35
    sure_of_encoder = 0 if flags.untyped(PROCESSOR) is not None else _SURE_OF_ENCODER
    sure = max(forward, 0 if pools else sampler) * least
    low, high = int(max(sure + video, encoder * sure_of_encoder)), int(best * 1.2) + 2 * GIB // 5
    if sampled is not None:
        logits = min(sampled, _SURE_OF_LOGITS * _logits(model, run))
        low = min(low, int(max(forward, logits, encoder if sure_of_encoder else 0) * _SURE))
        compiled = compiled_peak(flags, rules)
        best, high = max(best, compiled.best), max(high, compiled.high)
        if flags.speculative_config is not None or rules.assumptions:
            high = max(high, int((max(sampler + video, encoder) + GIB // 10) * 1.2) + 2 * GIB // 5)
    high += _BUFFERS_OF_EMBEDDINGS * batch * model.hidden * 2 if encoder else 0
    if rules.native_sampler:
        sorting = int(SORTED_BYTES_PER_LOGIT * _logits(model, run))
        best, high = max(best, sorting + video), max(high, sorting + video + GIB // 5)
        if flags.max_num_seqs is None and rules.numbers >= _TOOK_LESS_FROM:
            low = min(low, int(max(forward * least + video, encoder * sure_of_encoder)))
    if video and model.hidden > WIDEST_VIDEO:
        high += UNEXPLAINED_VIDEO
    high = max(high, compressed_peak(model, batch)) + unseen_peak(model, flags, run, rules)
    return Bounds(low=low, best=best + gathered, high=high + gathered)


def _logits(model: ModelFacts, run: Effective) -> int:
    """Logits of one step; an encoder samples nothing."""
    return 0 if model.encodes_only else min(run.max_num_seqs, run.max_num_batched_tokens) * model.vocab


def experts_workspace(model: ModelFacts, flags: Flags, batch: int, rules: VersionRules) -> int:
    """What the Triton kernel of experts holds for one step, bytes per device; kernels of narrower weights take less.

    Each token lies in two buffers once for every expert it visits, as wide as the wider of hidden and inner layer;
    ranks split the inner layer alone, and not even that where they hold whole experts. Before 0.18 a step went through
    in chunks. Qwen3 235B-A22B as FP8 over four H100: 8.7 GiB more for 65,536 tokens than for 8,192 (0.20.0).

    Args:
        model: Its experts, and how wide they are where the counted ones stand for another shape.
        flags: How ranks split them.
        batch: Tokens of one step over all replicas, which are gathered before experts are chosen.
        rules: Whether a step goes through in chunks.

    Source: TritonExperts.workspace_shapes in vllm/model_executor/layers/fused_moe of 0.20.0 and 0.33.0, the dispatch in
    prepare_finalize/naive_dp_ep.py there (0.16.0: prepare_finalize.py), and VLLM_FUSED_MOE_CHUNK_SIZE in vllm/envs.py
    of 0.10.0 to 0.18.0, read 2026-11-26.
    """
    if rules.numbers < _WHOLE_STEP_FROM:
        batch = min(batch, _CHUNK if rules.numbers >= _SMALL_CHUNK_FROM else 4 * _CHUNK)
    most = 0
    for layer in model.layers:
        if layer.experts:
            hidden, whole = layer.expert_shape or (model.hidden, layer.expert_intermediate)
            inner = whole // (1 if flags.enable_expert_parallel else flags.tp)
            buffers = max(inner, hidden) + max(2 * inner, hidden)
            most = max(most, layer.active_experts * buffers + 3 * model.hidden)
    return 2 * batch * most


def replicas(model: ModelFacts, flags: Flags) -> int:
    """Replicas whose batches meet at the experts, which all of them share.

    Four of Qwen 3 30B-A3B left 6.0 GiB of an L4, 7.6 are counted without what they gather (0.29.0).

    Source: FusedMoEParallelConfig and AllGatherReduceScatter in vllm/model_executor/layers/fused_moe/config.py and
    vllm/distributed/device_communicators/all2all.py of 0.33.0, read 2026-11-26.
    """
    return (flags.data_parallel_size or 1) if any(layer.experts for layer in model.layers) else 1


def sampler_most(model: ModelFacts, run: Effective) -> int:
    """The most that sampling for every sequence of a step was seen to take, bytes."""
    return int(SORTED_BYTES_PER_LOGIT * _logits(model, run)) + GIB // 10


def descriptor_memory(model: ModelFacts, accelerator: AcceleratorFacts, rules: VersionRules) -> Bounds:
    """What Blackwell's driver keeps from the first kernel on that uses tensor descriptors, bytes per device.

    The warm-up of gated delta nets runs such kernels: 3,728 MiB on 170 multiprocessors, 1,077 on 48; 0.17.1rc1 left
    3.42 GiB less of a cache from one build to the next. Later versions use them on Hopper alone, and only if asked.

    Source: vllm/model_executor/layers/fla/ops/utils.py (is_tma_supported) of 0.17.1 to 0.23.0, read 2026-11-23; issue
    36973 and pull request 37088 of vllm-project/vllm.
    """
    if not (rules.sets_descriptors_aside and _has_delta_nets(model) and accelerator.supports(_BLACKWELL)):
        return NOTHING
    count = accelerator.multiprocessors
    low, best, high = (int((count or _MOST_MULTIPROCESSORS) * share * MIB) for share in (20.5, 21.9, 22.5))
    return Bounds(low=0 if count is None else low, best=best, high=high)


def delta_kernel_memory(model: ModelFacts, accelerator: AcceleratorFacts) -> Bounds:
    """What FlashInfer's kernels of gated delta nets may keep on Hopper, which alone takes them without being asked.

    Recorded with Qwen 3.6 and 3.8 27B: 0.8, 1.8 and 4.9 GiB less were left than without them (694 blocks of 49 MiB on
    an H100 under 0.27.1).

    Source: vllm/model_executor/layers/mamba/gdn/qwen_gdn_linear_attn.py _resolve_gdn_prefill_backend, version 0.27.0,
    read 2026-11-23.
    """
    on_hopper = accelerator.kind is AcceleratorKind.CUDA and accelerator.compute_capability == _HOPPER
    return Bounds(low=0, best=0, high=5 * GIB) if on_hopper and _has_delta_nets(model) else NOTHING


def _has_delta_nets(model: ModelFacts) -> bool:
    states = [layer.recurrent for layer in model.layers if layer.recurrent is not None]
    return any(state.ssm_elements and not state.is_mamba2 for state in states)


_LARGEST_RADEON = 48 * GIB
_BESIDE_RCCL = Bounds(low=0, best=0, high=3 * GIB)
"""What two MI300X under Ray took beyond one."""

_HOST_GROWTH, _HOST_GROWTH_BEFORE, _HOST_GROWS_MORE_FROM = 6 * GIB, 15 * GIB // 4, (0, 14)
_HOST_GIVES_BACK = 5 * GIB
"""What other processes may release meanwhile, of which a cache got 3.0 and 3.8 GiB more than the best estimate."""

_SECOND_MACHINE = Bounds(low=0, best=8 * GIB, high=8 * GIB)
"""What two machines that share their memory with the device took beyond one."""


def non_torch(accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, *, shares: bool = False) -> Bounds:
    """Libraries' own memory that grows while starting: cuBLAS, attention workspaces, NCCL buffers with TP.

    Where host and device share their memory, the host's own growth is counted too (two start-ups alike but for the
    checkpoint's name left 40.6 and 44.0 GiB; vLLM 0.20), that of a second machine more: four start-ups on two GB10
    left 8.7 to 11.7 GiB less than the best estimate for one (0.10.1.1 under Ray, 0.29.1). All split tensors; stages are
    counted alike, for whose second machine nothing was seen. Up to 0.13 the host grew by less: ten start-ups of eight
    sources left at most 2.9 GiB less than the best estimate, from 0.18 on up to 6.2.

    What others release meanwhile counts for the server, as free memory is what the host has available: pools of 4.85
    and 22.72 GiB were printed where budget less weights is 2.75 and 21.2 (0.19.2 beside a server that was started just
    before; 0.23.1). Up to 0.13 nothing of the kind was seen.

    Source of that: MemorySnapshot.measure in vllm/utils/mem_utils.py of 0.12.0 to 0.26.0, read 2026-11-27.

    On ROCm two recorded start-ups of Radeons (vLLM 0.10.2 and 0.16) leave 0.9 and 2.5 GiB that CUDA does not take, one
    of an MI300X 4.3 (0.11.0rc2), and two MI300X under Ray 7.1 each. Replicas that share experts talk as ranks do.
    """
    if accelerator.kind is AcceleratorKind.ROCM:
        is_large = accelerator.total_bytes is not None and accelerator.total_bytes.best > _LARGEST_RADEON
        alone = Bounds(low=GIB // 16, best=GIB, high=int((6.0 if is_large else 2.8) * GIB))
        if flags.tp == 1 and not shares:
            return alone
        return alone + accelerator.peer_bytes + (_BESIDE_RCCL if is_large else NOTHING)
    grown = _HOST_GROWTH if rules.numbers >= _HOST_GROWS_MORE_FROM else _HOST_GROWTH_BEFORE
    host = grown if accelerator.unified else 0
    released = _HOST_GIVES_BACK if accelerator.unified and rules.numbers >= _HOST_GROWS_MORE_FROM else 0
    alone = Bounds(low=GIB // 50 - released, best=GIB // 4, high=GIB // 2 + host)
    peers = accelerator.peer_bytes if flags.tp > 1 or shares else NOTHING
    return alone + peers + (_SECOND_MACHINE if accelerator.unified and flags.world > 1 else NOTHING)


def is_counted(model: ModelFacts, flags: Flags) -> bool:
    """True when guessing tokens takes no memory beyond what is counted from the model's own facts."""
    asked = flags.speculative_config
    if asked is None or asked.method in _DRAFTLESS or own_mtp(model, flags) is not None:
        return True
    return is_assisted(model, flags)


def is_assisted(model: ModelFacts, flags: Flags) -> bool:
    """True for a Gemma 4 with its assistant, a small decoder without a cache of its own."""
    asked = flags.speculative_config
    named = asked is not None and (asked.method == "mtp" or "assistant" in asked.model)
    return named and model.assistant_bytes is not None


def assistant_weights(model: ModelFacts, flags: Flags) -> Bounds:
    """Weights of a Gemma 4 assistant, which guesses tokens from the target's own KV cache and adds none.

    Source of the shared cache: vllm/model_executor/models/gemma4_mtp.py, version 0.32.0, read 2026-11-21.
    """
    whole = model.assistant_bytes or NOTHING
    return Bounds(low=whole.low // flags.tp, best=whole.best // flags.tp, high=whole.high // flags.tp)


def draft_allowance(model: ModelFacts, flags: Flags, *, known: bool, length: int) -> Bounds:
    """Allowance for what a draft model takes beyond counted weights and layers.

    An assistant brings graphs and logits of its own; a draft model that is not known brings its weights and the layers
    it adds to every block.

    Args:
        model: The target.
        flags: How tokens are guessed, and ranks.
        known: The draft model is counted by facts of its own.
        length: Tokens of the longest request.
    """
    if known or flags.speculative_config is None:
        return NOTHING
    if is_assisted(model, flags):
        return Bounds(low=0, best=0, high=int(1.2 * GIB))
    if is_counted(model, flags):
        return NOTHING
    if is_bounded_draft(model, flags):
        return Bounds(low=0, best=0, high=_one_layer_draft(model, flags, length))
    return Bounds(low=0, best=0, high=4 * GIB // flags.tp)


_ONE_LAYER = frozenset({"eagle", "eagle3"})


def is_bounded_draft(model: ModelFacts, flags: Flags) -> bool:
    """Whether an unknown draft model is one decoder layer beside layers that all cache alike."""
    asked = flags.speculative_config
    caching = [layer for layer in model.layers if layer.owns_kv]
    alike = len({(layer.kind, layer.window_tokens, layer.kv_heads, layer.head_dim) for layer in caching}) == 1
    plain = alike and caching[0].kind is AttentionKind.FULL
    return asked is not None and asked.method in _ONE_LAYER and plain


def _one_layer_draft(model: ModelFacts, flags: Flags, length: int) -> int:
    """The most of one decoder layer in 16 bits, as wide as the target, that reads three of its layers, bytes.

    Embedding and head may be its own; of its keys and values every head may be cached.

    Source: vllm/model_executor/models/llama_eagle3.py and v1/worker/gpu/spec_decode/eagle/utils.py of 0.27.0, read
    2026-11-27.
    """
    hidden = model.hidden
    inner = max(4 * hidden, *(layer.intermediate for layer in model.layers))
    params = 2 * model.vocab * hidden + 10 * hidden * hidden + 3 * hidden * inner
    return 2 * params // flags.tp + length * 4 * hidden


def graph_estimate(model: ModelFacts, flags: Flags, run: Effective) -> Bounds:
    """What versions from 0.20 subtract for graphs before they are captured."""
    return _graphs(model, flags, run, base=0.08, per_size=0.0125)


def graph_memory(
    model: ModelFacts, flags: Flags, run: Effective, rules: VersionRules, *, flash_2: bool = False
) -> Bounds:
    """What the captured graphs take in the end.

    Args:
        model: Its depth counts.
        flags: Pipeline stages, and whether the number of sequences is a default.
        run: How many sizes are captured.
        rules: Where sizes were captured by eights, 48 layers took 1.92 GiB (four 3090, 0.11.0) and 94 took 3.45 (eight
            L40S, 0.10.2), more than any of 0.19.
        flash_2: FlashAttention 2 keeps buffers for every size: 2.24 GiB on an A100 for 67 sizes (0.9.2), 2.44 there and
            2.37 on 24 GB cards for 51 sizes (0.19), 0.53 for 11; sampler warm-up then ran out of memory at a
            utilisation of 0.9. A model of 64 layers took over 4 for 67 sizes (0.8.5) and failed. From 0.10 to 0.16
            the same cards took 0.5 to 0.65. From 0.17 on they hardly grow beyond 36 layers: 80 took 2.62 on each of
            four L40S (0.19.1) and 1.73 on each of two A100 (0.19.0, kuuroooo/MindSafe, logs/vllm_server.log).
    """
    most = _MOST_BY_EIGHTS if rules.captures_by_eights else _MOST
    usual = _graphs(model, flags, run, base=0.05, per_size=0.011, most=most)
    if not flash_2 or not run.captured:
        return usual
    depth = model.layer_count / flags.pp / _FLASH_2_LAYERS
    beyond = max(0.0, depth - 1) * (_SHARE_BEYOND if rules.numbers >= _GROWS_LESS_FROM else 1)
    buffers = 0.1 + 0.05 * run.captured * (min(1.0, depth) + beyond)
    return Bounds(low=usual.low, best=usual.best, high=max(usual.high, int(buffers * GIB)))


def _graphs(
    model: ModelFacts, flags: Flags, run: Effective, *, base: float, per_size: float, most: float = _MOST
) -> Bounds:
    """A graph has nodes for every layer: 80 layers took 1.6 to 1.8 GiB where 32 took 0.9 (46 start-ups of 0.19.0).

    Deep models of other backends stayed at half of that, so the best estimate grows by half of what the high end does.
    """
    if not run.captured:
        return NOTHING
    deeper = max(0.0, model.layer_count / flags.pp / _GRAPH_LAYERS - 1)
    nodes = per_size * run.captured
    least = 0.3 if flags.max_num_seqs is not None else 0.1
    return Bounds(
        low=int((base + nodes) * least * GIB),
        best=int((base + nodes * (1 + deeper / 2)) * GIB),
        high=int((base + nodes * (1 + deeper)) * most * GIB) + GIB // 10,
    )
