"""Which way to turn: by the numbers of the log."""

from dataclasses import replace

import pytest

from agent.failures.finding import Value
from agent.failures.rules.memory import cache_blocks, gpu_oom, hbm, illegal, occupied, offload_buffer, one_request
from agent.failures.rules.rule_input import RuleInput
from agent.failures.signature import FailureClass, Phase


def case(phase: Phase = Phase.UNKNOWN, text: str = "", **fields: Value) -> RuleInput:
    return RuleInput(line=text, text=text, fields=fields, phase=phase)


def test_memory_that_somebody_else_holds_is_not_ours_to_shrink() -> None:
    ruling = gpu_oom(case(gpu_total_gib=80.0, gpu_free_mib=10, process_gib=4.0, tried_mib=200))
    assert ruling.class_ is FailureClass.GPU_MEMORY_OCCUPIED
    assert gpu_oom(case(gpu_total_gib=80.0, gpu_free_mib=10, process_gib=79.0)).class_ is None
    several = "process 7 has 1.1 gib memory in use. process 8 has 70.0 gib memory in use."
    assert gpu_oom(case(text=several, gpu_total_gib=80.0, gpu_free_mib=10, process_gib=1.1)).class_ is None
    ours = "process 7 has 1.1 gib memory in use. including non-pytorch memory, this process has 64.50 gib in use."
    assert gpu_oom(case(text=ours, gpu_total_gib=80.0, gpu_free_mib=10, process_gib=1.1)).class_ is None


def test_who_has_allocated_nothing_found_the_card_full_unless_its_siblings_may_fill_it() -> None:
    several = "process 7 has 22.1 gib memory in use. process 8 has 254.00 mib memory in use. "
    nothing = several + "of the allocated memory 0 bytes is allocated by pytorch"
    full = {"gpu_total_gib": 23.7, "gpu_free_gib": 1.3}
    assert gpu_oom(case(Phase.LOADING, nothing, **full)).class_ is FailureClass.GPU_MEMORY_OCCUPIED
    assert gpu_oom(case(Phase.LOADING, several, **full)).class_ is None
    assert gpu_oom(case(Phase.LOADING, f"(worker_tp1 pid=8) {nothing}", **full)).class_ is None


def test_a_programs_own_frame_that_asks_the_engine_says_that_it_was_up() -> None:
    frame = '  file "/opt/lamp.py", line 70, in light\n    outputs = llm.generate(prompts)'
    assert gpu_oom(case(Phase.PROFILING, frame)).class_ is FailureClass.GPU_OOM_RUNTIME
    assert gpu_oom(case(Phase.PROFILING, "$ cat lamp.py\noutputs = llm.generate(prompts)")).class_ is None
    assert gpu_oom(case(Phase.LOADING, frame)).class_ is None


def test_a_frame_that_reads_a_tensor_says_that_weights_were_loaded() -> None:
    """TGI writes of a warm-up before its shards have their weights."""
    reads = '  file "/opt/lamp/utils/weights.py", line 119, in get_lamp\n    tensor = tensor.to(device=self.device)\n'
    out = "torch.cuda.outofmemoryerror: cuda out of memory."
    case_ = replace(case(Phase.PROFILING), line=out, text=f"traceback (most recent call last):\n{reads}{out}")
    assert gpu_oom(case_).class_ is FailureClass.GPU_OOM_WEIGHTS
    computes = reads + '  file "/opt/lamp/model.py", line 7, in forward\n    return oil\n'
    assert gpu_oom(replace(case_, text=f"traceback (most recent call last):\n{computes}{out}")).class_ is None


def test_a_card_that_pytorch_fills_to_the_brim_has_no_room_for_the_weights_whatever_their_share() -> None:
    assert gpu_oom(case(gpu_total_gib=14.62, torch_allocated_gib=14.42, tried_mib=20)).fixes[0].startswith("change_")
    assert "lower" in gpu_oom(case(gpu_total_gib=23.57, torch_allocated_gib=22.88, tried_mib=20)).fixes[0]
    assert gpu_oom(case(gpu_total_gib=80.0, torch_allocated_gib=77.0, tried_gib=2.5)).fixes[0].startswith("change_")
    fewer, nearly = "set_flag max_num_seqs lower", {"gpu_total_gib": 80.0, "torch_allocated_gib": 77.0}
    assert gpu_oom(case(gpu_total_gib=80.0, torch_allocated_gib=70.0, tried_gib=2.5)).fixes[0] == fewer
    assert gpu_oom(case(tried_gib=9.0, **nearly)).fixes[0] == fewer
    assert gpu_oom(case(tried_gib=2.5, gpu_memory_utilization=0.97, **nearly)).fixes[0] == fewer
    assert gpu_oom(case(tried_gib=256.0, **nearly)).fixes[0] == "set_flag limit_mm_per_prompt"
    assert "lower" in gpu_oom(case(gpu_total_gib=4.0, torch_allocated_gib=3.42, tried_mib=20)).fixes[0]


WAKES = '  file "/opt/vllm/worker/worker.py", line 140, in wake_up\n    allocator.wake_up()\n'
OUT = "runtimeerror: cuda error: out of memory at csrc/cumem_allocator.cpp:62"


def test_what_is_printed_of_waking_up_stands_above_its_traceback_or_without_one() -> None:
    out = "cuda error: out of memory at /workspace/csrc/cumem_allocator.cpp:62"
    wakes = '  file "/opt/vllm/entrypoints/llm.py", line 1572, in wake_up\n    self.llm_engine.wake_up(tags)\n'
    below = f"{out}\ntraceback (most recent call last):\n{wakes}"
    assert (
        gpu_oom(RuleInput(line=out, text=below, fields={}, phase=Phase.UNKNOWN)).class_ is FailureClass.GPU_OOM_RUNTIME
    )
    assert gpu_oom(case(Phase.UNKNOWN, out)).class_ is None
    saver = "cudaerror error: 2 (out of memory)  file=csrc/core.cpp func={} line=172"
    assert gpu_oom(case(text=saver.format("resume"))).class_ is FailureClass.GPU_OOM_RUNTIME
    assert gpu_oom(case(text=saver.format("malloc"))).class_ is None


@pytest.mark.parametrize("function", ["forward", "forward_cuda", "chunk_gated_delta_rule_fwd"])
def test_a_layer_that_computes_has_its_weights(function: str) -> None:
    frame = f'  file "/opt/lamp.py", line 7, in {function}\n    o = torch.empty_like(v)\n'
    assert gpu_oom(case(text=frame)).class_ is FailureClass.GPU_OOM_RUNTIME
    assert gpu_oom(case(text=frame.replace(function, "load_lamp"))).class_ is None


@pytest.mark.parametrize("phase", [Phase.UNKNOWN, Phase.LOADING])
def test_an_engine_that_wakes_up_had_started_long_before(phase: Phase) -> None:
    def ruled(above: str) -> FailureClass | None:
        return gpu_oom(RuleInput(line=OUT, text=above + OUT, fields={}, phase=phase)).class_

    assert ruled(WAKES) is FailureClass.GPU_OOM_RUNTIME
    assert ruled(f"{WAKES}runtimeerror: x\ntraceback (most recent call last):\n") is None
    assert ruled('  file "/opt/pool.py", line 140, in wake_up\n    self.llm = LLM()\n') is None


def test_a_large_block_without_a_phase_is_a_profile_run() -> None:
    assert gpu_oom(case(tried_gib=4.0)).class_ is FailureClass.GPU_OOM_PROFILE
    assert gpu_oom(case(tried_mib=100.0)).class_ is None


@pytest.mark.parametrize("phase", [Phase.PROFILING, Phase.UNKNOWN])
def test_a_block_that_is_larger_than_the_card_asks_for_less_at_once(phase: Phase) -> None:
    """No share of the card makes room for it: an encoder's attention of one large image asked for 256 GiB."""
    assert gpu_oom(case(phase, tried_gib=256.0, gpu_total_gib=15.98)).fixes[0] == "set_flag limit_mm_per_prompt"
    assert gpu_oom(case(phase, tried_gib=8.0, gpu_total_gib=15.98)).fixes[0] == "set_flag max_num_seqs lower"


def test_pools_of_captured_graphs_say_that_loading_is_over_and_leave_it_to_the_phase_where_one_is_known() -> None:
    pools = "9.1 gib is allocated by pytorch, with 96.00 mib allocated in private pools (e.g., cuda graphs)"
    assert gpu_oom(case(text=pools, tried_gib=1.7)).class_ is FailureClass.GPU_OOM_RUNTIME
    assert gpu_oom(case(Phase.GRAPH_CAPTURE, pools)).class_ is None


def test_llama_cpp_takes_no_share_and_reserves_after_it_has_loaded() -> None:
    loads = gpu_oom(case(text="ggml_backend_lamp_alloc_buffer: allocating 20.00 mib: out of memory", tried_gib=4.0))
    assert (loads.class_, loads.fixes[0]) == (None, "change_model_or_quantization")
    reserves = gpu_oom(case(text="ggml_gallocr_reserve_n: failed to allocate a buffer: out of memory"))
    assert (reserves.class_, reserves.fixes[0]) == (FailureClass.GPU_OOM_PROFILE, "set_flag max_model_len lower")


@pytest.mark.parametrize(
    ("share", "weights", "first"),
    [
        (0.4, 8.0, ""),
        (0.9, 12.0, ""),
        (0.95, 12.0, "set_flag max_model_len lower"),
        (0.9, 21.5, "set_flag max_model_len lower"),
    ],
)
def test_a_share_is_raised_only_where_the_card_has_room(share: float, weights: float, first: str) -> None:
    ruling = cache_blocks(case(gpu_memory_utilization=share, gpu_total_gib=22.0, weights_gib=weights))
    assert (ruling.fixes[0] if ruling.fixes else "") == first


def test_the_estimate_of_the_log_follows_the_direction() -> None:
    assert one_request(case(estimated_max_model_len=32640)).fixes[1] == "set_flag max_model_len 32640"
    assert "set_flag max_model_len 0" not in one_request(case(estimated_max_model_len=0)).fixes


def test_a_card_that_is_nearly_full_at_start_wants_the_other_process_gone() -> None:
    assert occupied(case(startup_free_gib=0.5, startup_total_gib=24.0)).fixes[0] == "restart"
    assert occupied(case(startup_free_gib=21.0, startup_total_gib=24.0)).fixes == ()


def test_programs_that_do_not_fit_want_a_lower_share_weights_another_topology() -> None:
    assert hbm(case(Phase.SERVING)).fixes[0] == "set_flag gpu_memory_utilization lower"
    assert (
        hbm(case(text="error gathering blocks for request lamp-0")).fixes[0] == "set_flag gpu_memory_utilization lower"
    )
    assert hbm(case(Phase.LOADING, "quantizing")).fixes[0] == "change_model_or_quantization"
    assert hbm(case(Phase.LOADING, hbm_exceeded_gib=30.0, hbm_total_gib=15.75)).fixes == ()


def test_offload_buffers_of_all_workers_tell_only_where_the_log_ends_with_them() -> None:
    said = "(vllmworker rank={} pid=2) lmcache info: {{'chunk_size': 256, 'max_local_cpu_size': '{} gb'}}"
    four = "\n".join(said.format(rank, 30.0) for rank in range(4))
    asked = RuleInput(
        line=four, text=four, fields={}, phase=Phase.UNKNOWN, also=frozenset({"offload_buffer_unfinished"})
    )
    assert offload_buffer(asked).class_ is None
    assert offload_buffer(replace(asked, text=said.format(0, 30.0))).class_ is FailureClass.UNKNOWN
    assert offload_buffer(replace(asked, progress_after=True)).class_ is FailureClass.UNKNOWN
    assert offload_buffer(replace(asked, also=asked.also | {"exit_137"})).class_ is FailureClass.UNKNOWN


def test_a_survivors_segmentation_fault_follows_from_the_peer_that_nccl_lost() -> None:
    fault, lost = "caught signal 11 (segmentation fault)", "ncclremoteerror: a call failed possibly due to ..."
    below = RuleInput(line=fault, text=f"{lost}\n{fault}", fields={}, phase=Phase.SERVING)
    assert illegal(below).class_ is FailureClass.UNKNOWN
    assert illegal(replace(below, text=f"{fault}\n{lost}")).class_ is None
    kernel = "an illegal memory access was encountered"
    assert illegal(replace(below, line=kernel, text=f"{lost}\n{kernel}")).class_ is None
