"""What the prediction knows about models, accelerators and vLLM versions, as parsed values with units."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent.fit.bounds import Bounds

_NOTHING = Bounds(low=0, best=0, high=0)


class TensorGroup(StrEnum):
    """The parts of a checkpoint that are sharded, quantised or offloaded alike."""

    EMBEDDINGS = "embeddings"
    PER_LAYER_EMBEDDINGS = "per_layer_embeddings"
    LM_HEAD = "lm_head"
    ATTENTION = "attention"
    RECURRENT = "recurrent"
    MLP = "mlp"
    EXPERTS = "experts"
    PER_LAYER_PROJECTIONS = "per_layer_projections"
    VISION = "vision"
    AUDIO = "audio"
    OTHER = "other"


LINEAR_GROUPS = frozenset({TensorGroup.ATTENTION, TensorGroup.RECURRENT, TensorGroup.MLP, TensorGroup.EXPERTS})
"""What the layers of a decoder multiply with, and what is quantised."""


class AttentionKind(StrEnum):
    """How a layer remembers: everything, a window, or a state of fixed size."""

    FULL = "full"
    SLIDING = "sliding"
    RECURRENT = "recurrent"
    LATENT = "latent"


class AcceleratorKind(StrEnum):
    """Which of vLLM's memory rules apply; CUDA and ROCm share one worker."""

    CUDA = "cuda"
    ROCM = "rocm"
    TPU = "tpu"
    CPU = "cpu"


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentState:
    """Per-sequence state of one linear-attention layer (gated delta net), in elements at TP 1.

    Attributes:
        conv_elements: Rolling convolution state, in the model's dtype.
        ssm_elements: Recurrent state.
        ssm_bytes_per_element: Width of the recurrent state: the config's ``mamba_ssm_dtype``, else the model's dtype.
        weight_params: Parameters of the layer's projections.
        conv_elements_per_token: What one more guessed token adds to the convolution state.
        is_mamba2: A Mamba 2 layer; versions that keep the state of every block under prefix caching do so for it.
    """

    conv_elements: int
    ssm_elements: int
    ssm_bytes_per_element: int
    weight_params: int
    conv_elements_per_token: int = 0
    is_mamba2: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerGroup:
    """Decoder layers that are alike in attention and feed-forward shape.

    Attributes:
        count: Number of layers.
        kind: How they remember.
        heads: Query heads.
        kv_heads: Key/value heads before tensor parallelism.
        head_dim: Elements per head.
        window_tokens: Sliding window; None for full attention.
        owns_kv: False for layers that reuse the KV cache of an earlier layer.
        keys_are_values: The checkpoint stores no V projection (vLLM still builds its slot, and caches both).
        has_bias: Q, K and V projections carry a bias.
        gated_output: The query projection is twice as wide, its other half gates the output (Qwen 3.5 and later).
        intermediate: Width of the dense feed-forward; 0 if the layer has none.
        experts: Number of experts; 0 for a dense layer.
        expert_intermediate: Width of one expert.
        expert_padding: Multiples to which vLLM pads an expert's (hidden, intermediate) where the kernel asks for it.
        shared_intermediate: Width of the expert that every token takes; 0 if there is none.
        active_experts: Experts that one token visits.
        latent_elements: Cached elements per token of latent attention (rank + rope part), else 0.
        index_bytes: Bytes per token that the indexer of sparse attention caches beside the layer's own (DeepSeek V3.2);
            0 where the layer takes over another one's choice, None without sparse attention.
        attention_params: Overrides the parameters counted from heads, for shapes this grammar cannot say.
        replicated_params: Those of them that every rank holds whole: the projections down to latent vectors.
        recurrent: State of a recurrent layer.
    """

    count: int
    kind: AttentionKind
    heads: int
    kv_heads: int
    head_dim: int
    window_tokens: int | None = None
    owns_kv: bool = True
    keys_are_values: bool = False
    has_bias: bool = False
    gated_output: bool = False
    intermediate: int = 0
    experts: int = 0
    expert_intermediate: int = 0
    expert_padding: tuple[int, int] | None = None
    shared_intermediate: int = 0
    active_experts: int = 0
    latent_elements: int = 0
    index_bytes: int | None = None
    attention_params: int | None = None
    replicated_params: int = 0
    recurrent: RecurrentState | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TowerFacts:
    """An encoder for images or sound, replicated on every rank unless ``sharded``.

    Attributes:
        params: Parameters of tower and projector.
        tokens_per_item: Language-model tokens of the largest item that vLLM profiles; 0 if unknown.
        image_tokens: Language-model tokens of the largest image.
        profile_bytes_per_batch: Activation peak of one profiled encoder batch; None: estimated.
        profile_bytes_per_token: The same by token of the profiled items, for towers whose items are large; None: the
            batch's figure or the estimate counts.
        sharded: True when the tower is split under tensor parallelism.
        splittable: An item may be split over steps (the model does not attend to it as a whole).
        unseen: What its profile run takes was never recorded, and no relative tells.
        unnamed: Layers whose name tells no tower are counted with it, so flags may leave less out than all of it; None:
            not known, the profile is older than the distinction.
    """

    params: int
    tokens_per_item: int = 0
    image_tokens: int = 0
    profile_bytes_per_batch: int | None = None
    profile_bytes_per_token: int | None = None
    sharded: bool = False
    splittable: bool = False
    unseen: bool = False
    unnamed: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantFacts:
    """How a checkpoint's tensors are stored.

    Attributes:
        scheme: "bf16", "fp8", "nvfp4", "w4a16", "awq", "gptq", "mxfp4", "w8a8", "w8a16" ...
        bytes_per_param: Bytes of one parameter in the quantised groups, scales included.
        groups: The tensor groups that are quantised; all others are 2 bytes.
        base_bytes_per_param: Bytes of one parameter elsewhere (2: bf16 and fp16).
        uncertainty: Share by which the quantised groups may be off: 0.0 read, 0.05 assumed from the name.
        heavier: Share by which they may be heavier still: some publishers leave layers in a wider type.
        widths: Bytes of one parameter of a quantised group that is stored in another width than the rest.
        narrows_cache: The tool whose config asks for a KV cache of 8-bit floats ("modelopt", "compressed-tensors").
    """

    scheme: str
    bytes_per_param: float
    groups: frozenset[TensorGroup]
    base_bytes_per_param: int = 2
    uncertainty: float = 0.0
    heavier: float = 0.0
    widths: tuple[tuple[TensorGroup, float], ...] = ()
    narrows_cache: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFacts:
    """One checkpoint: its architecture and how it is stored.

    Attributes:
        name: Hugging Face id or the name given by ``models add``.
        family: "gemma-4", "qwen3" ...; checkpoints of one family and size differ by quantisation.
        size: "31B", "26B-A4B" ...
        architecture: vLLM's architecture class.
        hidden, vocab, max_position: Sizes of the text model, in elements and tokens.
        other_positions: Context lengths of sibling checkpoints that people call by the same name.
        layers: The decoder.
        tied: Output head and embedding are one tensor.
        head_built_before_tying: vLLM allocates the output head and ties it later (a transient at load).
        per_layer_hidden: Width of Gemma's per-layer embeddings; 0 without.
        deepstack_levels: Buffers of one batch that carry visual features to the first layers (Qwen 3-VL); 0 without.
        rope_cache_bytes: Buffers of cosines and sines, replicated.
        norm_params: Norms, routers, scalars and biases: replicated, never quantised.
        vision, audio: Towers; None without.
        mtp: The layer that guesses tokens (multi-token prediction), loaded and cached only when asked for.
        mtp_bytes: Its bytes as stored; 0: computed from its shape.
        quant: How it is stored.
        assistant_bytes: Weights of its published assistant (a draft without a cache of its own); None: it has none.
        min_vllm: First version with this architecture; "" if older than all known.
        measured_bytes: Exact bytes per tensor group read from the checkpoint's headers; wins over arithmetic.
        checkpoint_bytes: Size of all tensors on disk, None if unknown.
        served_bytes: vLLM's printed load at TP 1, where the stored layout is not public ((low, high) when rounded).
        unmodelled: Why the memory of this model cannot be computed; "" if it can.
        assumptions: What was assumed to arrive at these facts.
        sources: Where the facts come from, each with its date.
    """

    name: str
    family: str
    size: str
    architecture: str
    hidden: int
    vocab: int
    max_position: int
    layers: tuple[LayerGroup, ...]
    quant: QuantFacts
    other_positions: tuple[int, ...] = ()
    tied: bool = False
    head_built_before_tying: bool = False
    per_layer_hidden: int = 0
    deepstack_levels: int = 0
    rope_cache_bytes: int = 0
    norm_params: int = 0
    vision: TowerFacts | None = None
    audio: TowerFacts | None = None
    mtp: LayerGroup | None = None
    mtp_bytes: int = 0
    assistant_bytes: Bounds | None = None
    min_vllm: str = ""
    measured_bytes: tuple[tuple[TensorGroup, int], ...] = ()
    checkpoint_bytes: int | None = None
    served_bytes: Bounds | None = None
    unmodelled: str = ""
    assumptions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def layer_count(self) -> int:
        """Decoder layers, all kinds."""
        return sum(group.count for group in self.layers)

    @property
    def attends_sparsely(self) -> bool:
        """An indexer chooses the tokens that a latent layer attends to."""
        return any(group.index_bytes is not None for group in self.layers)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceleratorFacts:
    """One GPU, chip or CPU as vLLM sees it.

    Attributes:
        name: Contract name, "nvidia-l4".
        kind: Whose memory rules apply.
        total_bytes: Device memory as vLLM prints it (cudaMemGetInfo), not as sold; None for a CPU (the host's).
        compute_capability: (major, minor) of a CUDA device; None otherwise.
        bandwidth_bytes_per_s: Memory bandwidth by data sheet.
        pcie_bytes_per_s: Host to device, measured or by generation; None without a bus.
        context_bytes: Memory taken before vLLM starts (CUDA context, desktop), lowering what is free.
        peer_bytes: Non-torch memory that tensor parallelism adds on each device (NCCL, all-reduce buffers).
        peer_context_bytes: What several ranks take on each device before the weights are loaded.
        source: Where the figures come from.
        date: When they were read, ISO.
        unified: CPU and GPU share this memory.
        small_batch: vLLM's default batch stays small although the card is large.
        default_batched_tokens: The platform's own default batch, None for the general rule.
        load_bytes: What loading takes beyond the weights and is printed with them (workspaces of the libraries).
        multiprocessors: How many it has; None where no rule asks for them.
    """

    name: str
    kind: AcceleratorKind
    total_bytes: Bounds | None
    compute_capability: tuple[int, int] | None
    bandwidth_bytes_per_s: int | None
    pcie_bytes_per_s: int | None
    context_bytes: Bounds
    source: str
    date: str
    peer_bytes: Bounds = _NOTHING
    peer_context_bytes: Bounds = _NOTHING
    unified: bool = False
    small_batch: bool = False
    default_batched_tokens: int | None = None
    load_bytes: Bounds = _NOTHING
    multiprocessors: int | None = None

    @property
    def device_bytes(self) -> Bounds:
        """Memory of a GPU or chip."""
        assert self.total_bytes is not None, f"{self.name!r} is {self.kind} and has memory of its own"
        return self.total_bytes

    @property
    def is_gpu(self) -> bool:
        """True where vLLM's GPU worker sizes the cache: CUDA and ROCm."""
        return self.kind in {AcceleratorKind.CUDA, AcceleratorKind.ROCM}

    def supports(self, capability: tuple[int, int]) -> bool:
        """True when the device has at least this compute capability."""
        return self.compute_capability is not None and self.compute_capability >= capability


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionRules:
    """What one vLLM version does with memory.

    Attributes:
        version: "0.26.0".
        default_utilisation: Of ``--gpu-memory-utilization``.
        graph_estimate_subtracted: The budget gives up an estimate for CUDA graphs.
        profiles_graphs: Two graphs of every kind are captured to estimate the rest, over a KV cache of a block for each
            token of the largest captured size, whether or not the estimate is subtracted.
        profiles_graphs_by_sequence: That cache has no more blocks than sequences.
        keeps_mxfp4_unpadded: On Hopper experts in MXFP4 are hardly padded, for the Triton kernel serves them.
        tokens_from_concurrency: "KV cache size" is concurrency x length, not blocks x block size.
        counts_in_flight_batches: Sliding windows are sized for every batch in flight.
        reserves_null_block: One block is held back when one request's need is checked.
        keeps_large_blocks_whole: Allocator blocks of 20 MiB and more are never split (int4 models lose memory).
        raises_batch_to_mm_item: Default batched tokens grow to the largest multimodal item.
        offloads_towers_first: CPU offload takes vision and audio towers before layer 0.
        very_large_card_batch: Cards of 160 GiB and more get 16,384 batched tokens.
        takes_modelopt_cache: ModelOpt's config chooses the type of the KV cache where no flag does.
        takes_compressed_cache: The config of compressed-tensors does.
        caches_recurrent_prefixes: Prefix caching is on by default for recurrent layers too.
        pads_unequal_pages: KV pages that do not divide each other are padded; before, such models were refused.
        asked: The version that was asked for, where it is another one of the same or a later number.
        harmless_flags: Flags known to leave device memory alone.
        group_padding_limit: A group of layers is padded to the largest type while that has under this many times the
            layers of the smallest; else groups are as large as the smallest type.
        equalises_pages: Pages of unequal size are made equal by longer blocks; before, such models were refused.
        widens_sliding_windows: Sliding layers beside full ones keep every token.
        captures_by_eights: Graphs are captured for every eighth size up to the largest, not every sixteenth from 256.
        captures_all_sizes: The largest captured size is 512 however few sequences are asked for.
        sets_descriptors_aside: Gated delta nets run kernels with tensor descriptors while memory is profiled.
        flash_2_graph_buffers: FlashAttention 2 keeps buffers for every captured size.
        counts_context: The budget pays for everything that is in use on the device, the CUDA context included.
        large_batch_on_a100: Every card of 70 GiB and more gets the large default batch.
        has_v0_engine: Some flags and devices fall back to the V0 engine, whose rules were not read.
        takes_pool_size: ``--kv-cache-memory-bytes`` exists.
        native_sampler: Without FlashInfer, as installed by default, the sampler sorts in PyTorch and takes more.
        samples_beyond_profile: The profile run leaves out top-k and top-p, the sampler's warm-up does not.
        keeps_first_runner: Models with experts or recurrent layers are served by Model Runner V1, whose profile run
            samples as its warm-up does.
        overlaps_stages: Asynchronous scheduling adds one batch to those of the pipeline stages.
        lays_out_recurrent: How recurrent layers lie beside attention was read.
        aligns_recurrent_prefixes: Prefix caching can be switched on for recurrent layers; before, the flag is ignored.
        needs_block_for_state: Graphs of whole steps need a block for the recurrent state of every sequence; None: not
            known, for the versions before and after differ.
        keeps_mamba2_states: With prefix caching, Mamba 2 layers keep the state of every block.
        is_dated: Older than what a question without a version can mean; other platforms of it were not read.
        is_unread: Older than every version that was read; the rules are those of the oldest one.
        assumptions: What was assumed because this exact version was not read.
        source: Where the rules were read.
    """

    version: str
    default_utilisation: float
    graph_estimate_subtracted: bool
    tokens_from_concurrency: bool
    counts_in_flight_batches: bool
    reserves_null_block: bool
    keeps_large_blocks_whole: bool
    raises_batch_to_mm_item: bool
    offloads_towers_first: bool
    profiles_graphs: bool = False
    keeps_mxfp4_unpadded: bool = False
    profiles_graphs_by_sequence: bool = False
    very_large_card_batch: bool = False
    takes_modelopt_cache: bool = False
    takes_compressed_cache: bool = False
    caches_recurrent_prefixes: bool = False
    pads_unequal_pages: bool = False
    group_padding_limit: float = 1.5
    equalises_pages: bool = True
    widens_sliding_windows: bool = False
    captures_by_eights: bool = False
    captures_all_sizes: bool = False
    sets_descriptors_aside: bool = False
    flash_2_graph_buffers: bool = False
    counts_context: bool = False
    large_batch_on_a100: bool = False
    has_v0_engine: bool = False
    takes_pool_size: bool = True
    native_sampler: bool = False
    samples_beyond_profile: bool = False
    keeps_first_runner: bool = False
    overlaps_stages: bool = False
    lays_out_recurrent: bool = True
    aligns_recurrent_prefixes: bool = True
    needs_block_for_state: bool | None = False
    keeps_mamba2_states: bool = False
    is_dated: bool = False
    asked: str = ""
    is_unread: bool = False
    harmless_flags: frozenset[str] = field(default_factory=frozenset)
    assumptions: tuple[str, ...] = ()
    source: str = ""
