"""What one vLLM version does with memory, as parsed values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_Numbers = tuple[int, ...] | None
FlagVersions = tuple[_Numbers, _Numbers, _Numbers, _Numbers]


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
        flag_versions: Of flags that not every version takes: the last version read before them, the first and the last
            one with them and the first after, each as numbers; None where there is none. Of a flag with few values
            each value has its own ("performance-mode=balanced"), and "performance-mode=" tells that no other is taken;
            "no-seed=" tells that there is no "--no-seed".
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
        has_v0_engine: Some flags and devices fall back to the V0 engine.
        is_v0: The V0 engine serves.
        chunk_tokens: Its batch where prompts are spread over steps.
        keeps_cached_blocks: Its profile run counts what the allocator keeps for later.
        takes_pool_size: ``--kv-cache-memory-bytes`` exists.
        native_sampler: Without FlashInfer, as installed by default, the sampler sorts in PyTorch and takes more.
        has_second_runner: Model Runner V2 serves models, before 0.29 those without experts or recurrent layers.
        overlaps_stages: Asynchronous scheduling adds one batch to those of the pipeline stages.
        lays_out_recurrent: How recurrent layers lie beside attention was read.
        aligns_recurrent_prefixes: Prefix caching can be switched on for recurrent layers; before, the flag is ignored.
        needs_block_for_state: Graphs of whole steps need a block for the recurrent state of every sequence; None: not
            known, for the versions before and after differ.
        keeps_mamba2_states: With prefix caching, Mamba 2 layers keep the state of every block.
        is_dated: Older than what a question without a version can mean; other platforms of it were not read.
        is_unread: Older than every version that was read; the rules are those of the oldest one.
        is_early: A build before the release whose number it carries.
        is_of_a_checkout: A build that names a commit or its maker: it may hold what the release of its number lacks.
        is_late_checkout: One without tags that counts as many commits as the newest releases do.
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
    is_v0: bool = False
    chunk_tokens: int = 2048
    keeps_cached_blocks: bool = False
    takes_pool_size: bool = True
    native_sampler: bool = False
    has_second_runner: bool = False
    overlaps_stages: bool = False
    lays_out_recurrent: bool = True
    aligns_recurrent_prefixes: bool = True
    needs_block_for_state: bool | None = False
    keeps_mamba2_states: bool = False
    is_dated: bool = False
    asked: str = ""
    is_unread: bool = False
    is_early: bool = False
    is_of_a_checkout: bool = False
    is_late_checkout: bool = False
    harmless_flags: frozenset[str] = field(default_factory=frozenset)
    flag_versions: Mapping[str, FlagVersions] = field(default_factory=dict, compare=False)
    assumptions: tuple[str, ...] = ()
    source: str = ""

    def unread(self) -> Iterator[str]:
        """What of the version was not read, so that nothing is said to fit by these rules alone."""
        if self.is_unread:
            yield f"what the profile run of vLLM before {self.version} takes was not read"
        if self.is_early and not self.asked and not self.is_late_checkout:
            yield "which release this build was made before is not known"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version that was asked for, as numbers that compare: (0, 26, 0)."""
        return tuple(map(int, (self.asked or self.version).split(".")))
