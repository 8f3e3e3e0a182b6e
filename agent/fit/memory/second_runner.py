"""What Model Runner V2 takes to sample: a state for every sequence, its profile run and the warm-up after that."""

from __future__ import annotations

from dataclasses import dataclass

from agent.fit.bounds import GIB, NOTHING, Bounds
from agent.fit.flags.flags import Flags
from agent.fit.memory.batch import Effective
from agent.fit.model_and_hardware import AcceleratorFacts, AcceleratorKind, ModelFacts
from agent.fit.version_rules import VersionRules

_STATE = 4 + 1 / 8
"""Bytes a logit: tokens counted in 32 bits for the penalties, and a bit for each token of the prompt."""

_LOGITS, _COPY, _GATHERED, _FLASHINFER = 2, 4, 4, 8
"""Bytes a logit: in 16 bits, copied to float32, gathered and laid out again over ranks, masked and as probabilities."""

_WARMED_UP_ELSEWHERE = 4
"""Bytes a logit that the warm-up takes beside logits and copy where FlashInfer does not sample: those of prompts."""

_WARM_UP_TOKENS = 2
"""Tokens of one prompt of the warm-up, and one more for each that is guessed."""

_BESIDE = GIB // 5
"""What the first call of kernels may hold beside that; assumed."""

_FLASHINFER_FROM = (8, 0)
_COUNTED_FROM, _COPIES_ONLY_IF_ASKED_FROM = (0, 27), (0, 28)
_BLACKWELL = (10, 0)
_WARMS_UP_FIRST_FROM, _PROFILES_WARM_UP_FROM = (0, 30), (0, 33)
_EVERY_MODEL_FROM = (0, 29)
_VERIFIES_BY_CHUNKS_FROM = (0, 28)
_FIRST_RUNNER_UNTIL = (0, 33)
_GUESSED_BY_SECOND = frozenset({"mtp", "eagle", "eagle3", "dflash", "dspark"})
_EXPERTS_BY_SECOND = frozenset({"DeepseekV2ForCausalLM", "GraniteMoeForCausalLM", "Qwen2MoeForCausalLM"})
"""Models with experts that are its own by default from 0.25.1 on."""

_BY_SECOND_FROM = {"DeepseekV4ForCausalLM": (0, 28), "KimiK3ForConditionalGeneration": (0, 27)}
"""Others, from a later version on; what they sample with is not distinguished here."""

_MAY_KEEP_THE_FIRST = frozenset(
    {
        "compilation-config",
        "enable-dbo",
        "enable-elastic-ep",
        "enable-prompt-embeds",
        "enable-return-routed-experts",
        "logits-processors",
        "prefill-context-parallel-size",
    }
)
"""Flags with which a server falls back to the other runner, or may: _get_v2_model_runner_unsupported_features."""

_NEVER_BY_SECOND = frozenset({"suffix", "custom_class"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Bytes of one device.

    Attributes:
        state: Held from before the profile run on.
        is_counted: The budget pays for the state.
        profiled: What sampling takes in the profile run.
        warm_up: The most that it takes when it is warmed up.
        is_profiled: The profile run samples as the warm-up does.
        warms_up_first: That comes before graphs are captured.
    """

    state: Bounds
    is_counted: bool
    profiled: int
    warm_up: int
    is_profiled: bool
    warms_up_first: bool


def second_runner(
    model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules, run: Effective
) -> Sampling | None:
    """How Model Runner V2 samples; None where it does not serve the model, or nothing is sampled.

    The profile run samples without top-k and top-p, before 0.28 from a copy in float32. The warm-up asks for both,
    which FlashInfer does in 14 bytes a logit: 1,024 sequences of 248,320 words found no room in 3.3 GiB (pull request
    48601 of vllm-project/vllm), for before 0.27 the budget did not pay for the state of 1.0. From 0.33 on the profile
    run samples as the warm-up does; a question without a version may mean an older one. A number of sequences that is
    not given may be what a record leaves out.

    Args:
        model: Its vocabulary counts.
        accelerator: FlashInfer samples from compute capability 8.0 on.
        flags: How ranks split the logits, and how tokens are guessed.
        rules: The version's.
        run: How many sequences one step may have.

    Source: vllm/v1/worker/gpu/model_runner.py (load_model, _dummy_sampler_run), gpu/warmup.py, gpu/sample/sampler.py
    and penalties.py, gpu/spec_decode/rejection_sampler.py, v1/worker/gpu_worker.py (determine_available_memory,
    compile_or_warm_up_model) and utils/mem_utils.py of 0.25.1 to 0.33.0; flashinfer/sampling.py
    (top_k_top_p_sampling_from_logits) of 0.2.14, 0.6.13 and 0.7.2, read 2026-11-27.
    """
    if not serves(model, flags, rules) or model.encodes_only or flags.pools:
        return None
    version, batch = rules.numbers, run.max_num_batched_tokens
    logits = min(run.max_num_seqs, batch) * model.vocab
    state = int(run.max_num_seqs * model.vocab * _STATE)
    by_flashinfer = accelerator.kind is AcceleratorKind.CUDA and accelerator.supports(_FLASHINFER_FROM)
    whole = _LOGITS + _COPY + (_FLASHINFER if by_flashinfer else _WARMED_UP_ELSEWHERE)
    profiled = whole if version >= _PROFILES_WARM_UP_FROM else _LOGITS
    profiled += _COPY if version < _COPIES_ONLY_IF_ASKED_FROM else 0
    gathered = _GATHERED + _LOGITS / flags.tp if flags.tp > 1 else 0
    guessed = flags.speculative_config.tokens if flags.speculative_config is not None else 0
    warmed_up = min(run.max_num_seqs, batch // (_WARM_UP_TOKENS + guessed)) * model.vocab
    verified = warmed_up * (1 + guessed)
    copied = verified * _COPY if version < _VERIFIES_BY_CHUNKS_FROM else min(verified * _COPY, GIB)
    most = max(warmed_up * whole, verified * _LOGITS + copied, verified * gathered)
    return Sampling(
        state=Bounds(low=0 if flags.max_num_seqs is None else state, best=state, high=state),
        is_counted=version >= _COUNTED_FROM,
        profiled=int(logits * max(profiled, gathered)),
        warm_up=int(most) + _BESIDE,
        is_profiled=version >= _PROFILES_WARM_UP_FROM and bool(rules.asked),
        warms_up_first=version >= _WARMS_UP_FIRST_FROM,
    )


def serves(model: ModelFacts, flags: Flags, rules: VersionRules) -> bool:
    """Whether Model Runner V2 serves it, unless the environment says otherwise.

    Source: vllm/config/vllm.py use_v2_model_runner, _is_default_v2_model_runner_model and
    _get_v2_model_runner_unsupported_features of 0.25.1 to 0.33.0, read 2026-11-27.
    """
    guessing = flags.speculative_config
    if not rules.has_second_runner:
        return False
    if guessing is not None and guessing.method and not guessing.method.endswith("_mtp"):
        if guessing.method in _NEVER_BY_SECOND:
            return False
        if rules.numbers < _FIRST_RUNNER_UNTIL and guessing.method not in _GUESSED_BY_SECOND:
            return False
    if rules.numbers >= _EVERY_MODEL_FROM or model.architecture in _EXPERTS_BY_SECOND:
        return True
    if rules.assumptions:  # of two versions beside each other one may hold
        return True
    return not _is_kept_by_first(model)


def estimates_graphs(model: ModelFacts, flags: Flags, rules: VersionRules) -> bool | None:
    """Whether graphs are profiled where the version does so at all: before 0.29 Model Runner V2 estimates none.

    None where either runner may serve, and of builds on the way to a release, which may do as it does. Pooling models
    are the first runner's until 0.29.

    Source: issue 49224 of vllm-project/vllm and profile_cudagraph_memory in vllm/v1/worker/gpu/model_runner.py, which
    returns 0 before 0.29.0, read 2026-11-27; with an estimate eight pools of 0.25.1 to 0.28.0 were over their range.
    """
    if rules.numbers >= _EVERY_MODEL_FROM or flags.pools:
        return True
    later = rules.numbers >= _BY_SECOND_FROM.get(model.architecture, _EVERY_MODEL_FROM)
    if not (later or serves(model, flags, rules)):
        return True
    either = rules.assumptions and _is_kept_by_first(model) and model.architecture not in _EXPERTS_BY_SECOND
    return None if rules.is_early or later or either or flags.asks_for(_MAY_KEEP_THE_FIRST) else False


def compiled_peak(flags: Flags, rules: VersionRules) -> Bounds:
    """The peak of a profile run that compiles the model first, which this runner's own does not hide before 0.29.

    0.15 GiB were printed of a 4B with its compiled code at hand and 0.83 to 1.09 without (0.27.1), 0.33 and 1.46 of a
    32B (0.28). Later the estimate for graphs, which is given up too, hides it: no pool was under its range.
    """
    compiles = not flags.enforce_eager and flags.compilation_level != 0
    unseen = not compiles or rules.numbers >= _EVERY_MODEL_FROM
    return NOTHING if unseen else Bounds(low=0, best=GIB // 2, high=2 * GIB)


def compiled_libraries(model: ModelFacts, accelerator: AcceleratorFacts, flags: Flags, rules: VersionRules) -> Bounds:
    """What libraries may hold on Blackwell after that: 1.4 GiB more beside a 32B and a 14B as AWQ (0.28).

    It comes together with that peak, not by itself, so it is bounded by more than it was.
    """
    on_blackwell = accelerator.kind is AcceleratorKind.CUDA and accelerator.supports(_BLACKWELL)
    unseen = not on_blackwell or estimates_graphs(model, flags, rules) is True
    return NOTHING if unseen or not compiled_peak(flags, rules).high else Bounds(low=0, best=0, high=2 * GIB)


def _is_kept_by_first(model: ModelFacts) -> bool:
    return any(layer.experts or layer.recurrent is not None for layer in model.layers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Beyond:
    """What sampling takes beside the profiled peak, bytes of one device.

    Attributes:
        counted: Of its state, what the budget pays for.
        kept: Of its state, what the budget does not pay for.
        warm_up: What warming up takes more than was profiled.
        warms_up_first: That is given back before graphs are captured.
    """

    counted: Bounds = NOTHING
    kept: Bounds = NOTHING
    warm_up: Bounds = NOTHING
    warms_up_first: bool = False


def beyond_profile(sampling: Sampling | None, activations: Bounds) -> Beyond:
    """Compare how it samples with the peak that was profiled; nothing where another runner serves."""
    if sampling is None:
        return Beyond()
    paid = sampling.profiled + _BESIDE if sampling.is_profiled else activations.low
    return Beyond(
        counted=sampling.state if sampling.is_counted else NOTHING,
        kept=NOTHING if sampling.is_counted else sampling.state,
        warm_up=Bounds(low=0, best=0, high=max(0, sampling.warm_up - paid)),
        warms_up_first=sampling.warms_up_first,
    )
