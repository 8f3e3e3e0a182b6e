"""What the prediction knows about models and accelerators, as parsed values with units."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent.fit.bounds import NOTHING, Bounds


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
    """How a layer remembers: everything, a window, a state of fixed size, or what an encoder found once."""

    FULL = "full"
    SLIDING = "sliding"
    RECURRENT = "recurrent"
    LATENT = "latent"
    CROSS = "cross"


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
        window_tokens: Sliding window, or an encoder's tokens for cross attention; None for full attention.
        owns_kv: False for layers that reuse the KV cache of an earlier layer.
        keys_are_values: The checkpoint stores no V projection (vLLM still builds its slot, and caches both).
        has_bias: Q, K and V projections carry a bias.
        gated_output: The query projection is twice as wide, its other half gates the output (Qwen 3.5 and later).
        intermediate: Width of the dense feed-forward; 0 if the layer has none.
        experts: Number of experts; 0 for a dense layer.
        expert_intermediate: Width of one expert.
        expert_shape: (hidden, intermediate) of the experts where the counted ones stand for another shape: without a
            gate, in a latent space.
        expert_padding: Multiples to which vLLM pads an expert's (hidden, intermediate) where the kernel asks for it.
        shared_intermediate: Width of the expert that every token takes; 0 if there is none.
        active_experts: Experts that one token visits.
        latent_elements: Cached elements per token of latent attention (rank + rope part), else 0.
        index_bytes: Bytes per token that the indexer of sparse attention caches beside the layer's own (DeepSeek V3.2);
            0 where the layer takes over another one's choice, None without sparse attention.
        compression: Tokens that DeepSeek V4 keeps as one beside its window (4, 128), 0 for a window alone, else None.
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
    expert_shape: tuple[int, int] | None = None
    expert_padding: tuple[int, int] | None = None
    shared_intermediate: int = 0
    active_experts: int = 0
    latent_elements: int = 0
    index_bytes: int | None = None
    compression: int | None = None
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
        alone_bytes_per_token: The same on one device for all checkpoints but NVFP4, where that is less.
        sharded: True when the tower is split under tensor parallelism.
        splittable: An item may be split over steps (the model does not attend to it as a whole).
        unseen: What its profile run takes was never recorded, and no relative tells.
        most_bytes_per_batch: Of one that is unseen, the most that the tensors of its code can hold for 2,048 tokens of
            the batch; None: its code was not read for that, or its items have no largest size.
        unnamed: Layers whose name tells no tower are counted with it, so flags may leave less out than all of it; None:
            not known, the profile is older than the distinction.
    """

    params: int
    tokens_per_item: int = 0
    image_tokens: int = 0
    profile_bytes_per_batch: int | None = None
    profile_bytes_per_token: int | None = None
    alone_bytes_per_token: int | None = None
    sharded: bool = False
    splittable: bool = False
    unseen: bool = False
    most_bytes_per_batch: int | None = None
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
        lighter: Share by which they may be lighter, where that is more.
        heavier: Share by which they may be heavier still: some publishers leave layers in a wider type.
        widths: Bytes of one parameter of a quantised group that is stored in another width than the rest.
        narrows_cache: The tool whose config asks for a KV cache of 8-bit floats ("modelopt", "compressed-tensors").
    """

    scheme: str
    bytes_per_param: float
    groups: frozenset[TensorGroup]
    base_bytes_per_param: int = 2
    uncertainty: float = 0.0
    lighter: float = 0.0
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
    def encodes_only(self) -> bool:
        """No layer caches: an encoder, whose texts are read whole."""
        return not any(group.owns_kv for group in self.layers)

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
    peer_bytes: Bounds = NOTHING
    peer_context_bytes: Bounds = NOTHING
    unified: bool = False
    small_batch: bool = False
    default_batched_tokens: int | None = None
    load_bytes: Bounds = NOTHING
    multiprocessors: int | None = None

    @property
    def cited(self) -> str:
        """Its source with its name and date."""
        return f"{self.name}: {self.source} ({self.date})"

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
