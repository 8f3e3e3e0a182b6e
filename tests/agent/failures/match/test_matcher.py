"""The matcher: first cause, phase, numbers, look-alikes, and nothing where nothing is known."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.catalogue.load_failures import FailureCatalogue
from agent.failures.finding import Finding
from agent.failures.match.matcher import MEMO_CHARS, MEMO_TEXTS, Matcher, compile_catalogue
from agent.failures.match.phrase import parse_phrase, phrase_pattern
from agent.failures.score import same_fix
from agent.failures.signature import TROUBLE, FailureClass, Phase, Role
from agent.failures.text.client_text import without_client_words
from agent.failures.text.entry_text import log_lines

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 22.05 GiB of which 123.00 MiB is free."


def classify(matcher: Matcher, text: str, platform: str | None = None) -> Finding:
    return matcher.classify(text, whole_log="\n" in text, platform=platform)


def filled(phrase: str, *, whole: bool = False) -> str:
    if whole:
        return "2031-05-06T07:08:09Z " + phrase
    return "something before " + phrase.replace("<*>", " 17 things ") + " and after"


def test_every_phrase_leads_to_its_own_signature(catalogue: FailureCatalogue, matcher: Matcher) -> None:
    lost = []
    for signature in catalogue.signatures:
        for phrase in signature.phrases:
            line = filled(phrase, whole=signature.whole_line)
            if any(veto in line for veto in signature.unless):
                continue
            found = {compiled.entry.id for _, compiled in matcher._all.sightings([line])}
            if signature.id not in found:
                lost.append((signature.id, phrase))
    assert lost == []


def test_no_signature_vetoes_most_of_its_own_phrases(catalogue: FailureCatalogue) -> None:
    for signature in catalogue.signatures:
        dead = [phrase for phrase in signature.phrases if any(veto in phrase for veto in signature.unless)]
        assert len(dead) * 5 <= len(signature.phrases), (signature.id, dead)


@pytest.mark.parametrize(
    ("before", "class_", "phase"),
    [
        ("INFO [gpu_model_runner.py:1] Starting to load model google/gemma-4-31B-it...", "gpu_oom_weights", "loading"),
        ("INFO [gpu_model_runner.py:2] Model loading took 17.2 GiB and 40 seconds", "gpu_oom_profile", "profiling"),
        ("INFO [kv_cache_utils.py:3] GPU KV cache size: 41,328 tokens", "gpu_oom_profile", "graph_capture"),
        ("INFO:     Application startup complete.", "gpu_oom_runtime", "serving"),
        ('  File "/w/gpu_worker.py", line 3, in load_model', "gpu_oom_weights", "loading"),
        ('  File "/w/gpu_model_runner.py", line 3, in profile_run', "gpu_oom_profile", "profiling"),
        ('  File "/w/gpu_model_runner.py", line 3, in capture_model', "gpu_oom_profile", "graph_capture"),
        ('  File "/w/core.py", line 3, in run_busy_loop', "gpu_oom_runtime", "serving"),
    ],
)
def test_the_phase_decides_what_out_of_memory_means(matcher: Matcher, before: str, class_: str, phase: str) -> None:
    found = classify(matcher, f"{before}\n{OOM}")
    assert (found.class_, found.phase, found.certain) == (class_, phase, True)


def test_a_bare_line_whose_phase_is_unknown_stays_provisional(matcher: Matcher) -> None:
    found = classify(matcher, OOM)
    assert found.class_ in {"gpu_oom_weights", "gpu_oom_profile", "gpu_oom_runtime"}
    assert not found.certain
    assert found.confidence < 0.6
    assert found.fields["tried_mib"] == 896.0
    assert found.fields["gpu_total_gib"] == 22.05


def test_the_output_head_of_gemma_4_is_a_loading_failure_even_without_a_phase(matcher: Matcher) -> None:
    found = classify(matcher, "in VocabParallelEmbedding\n" + OOM.replace("896.00 MiB", "2.62 GiB"))
    assert found.class_ is FailureClass.GPU_OOM_WEIGHTS
    assert "set_flag enforce_eager" not in found.fix_actions


def test_the_first_cause_comes_before_its_consequences_in_any_order(matcher: Matcher) -> None:
    cause = "(EngineCore pid=9) ValueError: To serve at least one request with the model's max seq len (131072), (4.0 GiB KV cache is needed, which is larger than the available KV cache memory (1.0 GiB). Based on the available memory, the estimated maximum model length is 32640."
    rest = [
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        "Container called exit(1).",
        'Default STARTUP TCP probe failed 1 time consecutively for container "vllm-1" on port 8000. The instance was not started. Connection failed with status CANCELLED.',
        "Ready condition status changed to False for Revision r-1 with message: The user-provided container failed to start and listen on the port",
    ]
    for place in range(len(rest) + 1):
        found = classify(matcher, "\n".join([*rest[:place], cause, *rest[place:]]), "cloud_run")
        assert found.class_ is FailureClass.KV_CACHE_INSUFFICIENT
        assert not found.consequence
        assert found.fields["estimated_max_model_len"] == 32640
        assert found.fix_actions[:2] == ("set_flag max_model_len lower", "set_flag max_model_len 32640")
    assert classify(matcher, "\n".join(rest), "cloud_run").consequence


def test_no_cache_blocks_has_two_opposite_remedies_and_the_numbers_choose(matcher: Matcher) -> None:
    error = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
    shared = (
        "non-default args: {'gpu_memory_utilization': 0.5}\nModel loading took 9.1 GiB\ntotal_gpu_memory (22.05GiB) x\n"
    )
    full = "non-default args: {'gpu_memory_utilization': 0.95}\nModel loading took 20.9 GiB\ntotal_gpu_memory (22.05GiB) x\n"
    assert classify(matcher, shared + error).fix_actions[0] == "set_flag gpu_memory_utilization up"
    assert classify(matcher, full + error).fix_actions[0] == "set_flag max_model_len lower"


def test_a_hidden_import_failure_is_not_a_missing_architecture(matcher: Matcher) -> None:
    found = classify(
        matcher,
        "RuntimeError: operator torchvision::nms does not exist\n"
        "ERROR [registry.py:9] Error in inspecting model architecture 'Gemma3ForConditionalGeneration'\n"
        "ValueError: Model architectures ['Gemma3ForConditionalGeneration'] failed to be inspected. Please check the logs for more details.",
    )
    assert found.fix_actions[0] == "fix_image_or_driver"


@pytest.mark.parametrize(
    ("text", "class_"),
    [
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 16.9G of 15.75G hbm.", "tpu_hbm_oom"),
        (
            "google.api_core.exceptions.ResourceExhausted: 429 RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'x'",
            "quota_exceeded",
        ),
        ("OSError: [Errno 28] No space left on device: '/root/.cache/huggingface'", "disk_full"),
        ("RuntimeError: unable to write to file </torch_12>: No space left on device /dev/shm/nccl-a", "shm_too_small"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.", "gpu_hardware_fault"),
        ("NVRM: Xid (PCI:0000:3b:00): 31, pid=1, MMU Fault", "illegal_memory_access"),
        ("dd: Fehler: Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "disk_full"),
        ("Out of memory: Killed process 4242 (VLLM::Worker) total-vm:1kB", "host_oom"),
        ('Back-off pulling image "vllm/vllm-openai:nope": ErrImagePull: manifest unknown', "image_pull_failed"),
    ],
)
def test_one_word_with_many_meanings(matcher: Matcher, text: str, class_: str) -> None:
    assert classify(matcher, text).class_ == class_


@pytest.mark.parametrize(
    "text",
    [
        "INFO CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization` or enforcing eager mode.",
        "WARNING 06-06 03:40:42 [vllm.py:1033] Enforce eager set, disabling torch.compile and CUDAGraphs.",
        'Default STARTUP TCP probe succeeded after 1 attempt for container "vllm-1" on port 8000.',
        "Starting new instance. Reason: DEPLOYMENT_ROLLOUT - Instance started due to traffic shifting",
        "Container called exit(0).",
    ],
)
def test_harmless_look_alikes_are_benign(matcher: Matcher, text: str) -> None:
    found = classify(matcher, text)
    assert found.benign
    assert found.class_ is FailureClass.BENIGN
    line = matcher.line(text)
    assert line is not None
    assert line.role is Role.BENIGN
    assert list(matcher.troubles([text])) == []


def test_a_notice_that_repeats_without_progress_is_a_hang_and_with_progress_none(matcher: Matcher) -> None:
    notice = "INFO [shm_broadcast.py:681] No available shared memory broadcast block found in 60 seconds."
    assert classify(matcher, "\n".join([notice] * 4)).class_ is FailureClass.ENGINE_HANG
    assert classify(matcher, f"{notice}\n{notice}\nINFO torch.compile takes 93.1 s in total").benign


def test_running_requests_without_a_token_are_a_hang_only_when_it_lasts(matcher: Matcher) -> None:
    line = "Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 4 reqs, Waiting: 2 reqs, GPU KV cache usage: 31.0%"
    assert classify(matcher, line).benign
    assert classify(matcher, "\n".join([line] * 3)).class_ is FailureClass.ENGINE_HANG
    assert classify(
        matcher, "\n".join([line.replace("Running: 4", "Running: 0").replace("Waiting: 2", "Waiting: 0")] * 3)
    ).benign


def test_a_trouble_of_start_up_that_was_overcome_is_none(matcher: Matcher) -> None:
    text = "vLLM API server version 0.32.0\nConnectionError: MaxRetryError on huggingface.co\nINFO:     Application startup complete."
    assert classify(matcher, text).benign
    assert classify(matcher, "\n".join(text.split("\n")[:2])).class_ is FailureClass.NETWORK_TIMEOUT


def test_what_follows_an_ordered_stop_is_no_trouble_and_a_death_without_one_is(matcher: Matcher) -> None:
    up = "INFO:     Application startup complete."
    stop = "[shutdown] EngineCore: trigger received signal=SIGTERM"
    end = "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    assert classify(matcher, f"{up}\n{stop}\n{end}").benign
    assert classify(matcher, f"{up}\n{end}").class_ is FailureClass.ENGINE_DEAD


def test_an_engine_that_its_launcher_ends_does_not_excuse_the_one_that_failed(matcher: Matcher) -> None:
    stop, failed = "(EngineCore_DP1 pid=8) KeyboardInterrupt: terminated", "(EngineCore_DP0 pid=7) Exception: "
    failed += "WorkerProc initialization failed due to an exception in a background process."
    assert classify(matcher, f"{stop}\n{failed}").class_ is FailureClass.ENGINE_DEAD
    own = stop.replace("DP1 pid=8", "DP0 pid=7")
    assert classify(matcher, f"{own}\n{stop}\n{failed}").class_ is not FailureClass.ENGINE_DEAD
    assert classify(matcher, f"{stop.replace('(EngineCore_DP1 pid=8) ', '')}\n{failed}").class_ != "engine_dead"


def test_nothing_known_is_unknown_with_the_most_telling_lines(matcher: Matcher) -> None:
    found = classify(matcher, "frobnicating\nZorkError: the grue has eaten the lamp\nstill here")
    assert (found.class_, found.signature, found.certain) == (FailureClass.UNKNOWN, None, False)
    assert found.confidence <= 0.3
    assert "ZorkError" in found.evidence[0].text


def test_words_without_a_known_text_are_never_certain_and_no_trouble_line(matcher: Matcher) -> None:
    text = "the lamp's quota is out of joint"
    found = classify(matcher, text)
    assert found.hint
    assert not found.certain
    assert found.confidence <= 0.5
    assert list(matcher.troubles([text])) == []


def test_colours_prefixes_and_interleaved_workers_do_not_hide_a_cause(matcher: Matcher) -> None:
    text = '(Worker_TP0 pid=3) \x1b[31mERROR\x1b[0m   File "/w/gpu_worker.py", line 1, in load_model\n(Worker_TP1 pid=4) ERROR   File "/w/gpu_worker.py", line 1, in load_model\n(Worker_TP0 pid=3) torch.OutOfMemory\x1b[0mError: CUDA out of memory. Tried to allocate 1.00 GiB.\n(Worker_TP1 pid=4) INFO something else'
    found = classify(matcher, text)
    assert found.class_ is FailureClass.GPU_OOM_WEIGHTS
    assert "\x1b" not in found.evidence[0].text


def test_a_line_cut_off_is_still_recognised(matcher: Matcher) -> None:
    cut = "ValueError: To serve at least one request with the model's max seq len (131072), (4.0 Gi"
    assert classify(matcher, cut).class_ is FailureClass.KV_CACHE_INSUFFICIENT


def test_the_platform_demotes_what_belongs_elsewhere(matcher: Matcher) -> None:
    text = "ValueError: No available memory for the cache blocks.\nAssertionError: num_gpu_blocks is 0"
    assert classify(matcher, text, "host").signature == "no_cache_blocks"


def test_line_agrees_with_scan_and_scan_with_troubles(catalogue: FailureCatalogue, matcher: Matcher) -> None:
    lines = [filled(phrase) for signature in catalogue.signatures for phrase in signature.phrases[:2]]
    scanned = dict(matcher.scan(lines))
    troubles = dict(matcher.troubles(lines))
    for index, line in enumerate(lines):
        assert matcher.line(line) == scanned.get(index)
    assert troubles == {i: m for i, m in scanned.items() if m.role in {Role.CAUSE, Role.CONSEQUENCE}}


def slow_scan(catalogue: FailureCatalogue, lines: list[str]) -> dict[int, str]:
    """The same answer by a loop over regular expressions, without the index."""
    order = list(Role)
    entries = sorted(catalogue.signatures, key=lambda s: (-order.index(s.role), s.precedence), reverse=True)
    compiled = [
        (
            entry,
            [re.compile(phrase_pattern(parse_phrase(p), whole_line=entry.whole_line), re.ASCII) for p in entry.phrases],
            [re.compile(phrase_pattern(parse_phrase(veto, at_least=1, fold=False))) for veto in entry.unless],
        )
        for entry in entries
    ]
    claims = [parse_phrase(p).anchor.decode() for s in catalogue.signatures if s.claims_line for p in s.phrases]
    found = {}
    for index, line in enumerate(map(without_client_words, lines)):
        lowered = line.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
        claimed = any(claim in lowered for claim in claims)
        for entry, phrases, vetoes in compiled:
            if entry.needs_silence or (claimed and entry.role in TROUBLE):
                continue
            if any(p.search(lowered) for p in phrases) and not any(v.search(line) for v in vetoes):
                found[index] = entry.id
                break
    return found


@pytest.mark.slow
def test_the_index_finds_what_a_loop_over_patterns_finds(catalogue: FailureCatalogue, matcher: Matcher) -> None:
    words = [phrase for signature in catalogue.signatures for phrase in signature.phrases[:3]]
    pieces = st.lists(st.one_of(st.sampled_from(words), st.text(max_size=8)), max_size=4)

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(st.lists(pieces, min_size=1, max_size=6))
    def check(rows: list[list[str]]) -> None:
        lines = [" ".join(row).replace("<*>", "7").replace("\n", " ").replace("\r", " ") for row in rows]
        assert {i: m.signature for i, m in matcher.scan(lines)} == slow_scan(catalogue, lines)

    check()


def test_hostile_text_is_survived(matcher: Matcher) -> None:
    for text in ("", "\n\n\n", "\x00\x1b[", "a" * 100_000, "\ud800 broken", "CUDA out of memory " * 5_000, "[" * 9_999):
        found = classify(matcher, text)
        assert 0.0 <= found.confidence <= 1.0


def test_phase_unknown_has_no_class_by_phase_of_its_own(catalogue: FailureCatalogue) -> None:
    assert all(Phase.UNKNOWN not in signature.class_by_phase for signature in catalogue.signatures)


@pytest.mark.parametrize(
    "said",
    [
        "ValueError: EPLB communicator 'pynccl' requested but the weights contain unsupported dtypes: (lamp).",
        "ValueError: indexer_kv_dtype='lamp' is not supported by the sparse indexer",
        "ValueError: LoRA rank `r` must be a positive integer, got 0.",
        "ValueError: sliding_window must be a positive integer",
        "ValueError: Following weights were not initialized from checkpoint: {'lamp.weight'}",
        "google.auth.exceptions.DefaultCredentialsError: Your default credentials were not found.",
    ],
)
def test_words_of_a_refusal_that_do_not_say_whose_it_is_are_not_certain(matcher: Matcher, said: str) -> None:
    """A flag, the checkpoint, an adapter and a part with a setting of its own are refused in the same words."""
    found = classify(matcher, said)
    assert found.class_ is not FailureClass.UNKNOWN
    assert not found.certain


TEXTS = json.loads((Path(__file__).parents[1] / "texts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", TEXTS, ids=[f"{n}-{row['class']}" for n, row in enumerate(TEXTS)])
def test_texts_written_from_the_sources_get_their_class(matcher: Matcher, row: dict[str, str]) -> None:
    """And their entry, where another one gives the same class."""
    found = classify(matcher, row["text"])
    assert (found.class_, row.get("entry", found.signature)) == (row["class"], found.signature)


@pytest.mark.parametrize(
    "said",
    [
        "JuiceFS is mounted at /lamps",
        "mount.nfs: trying text-based options 'vers=4.1,addr=192.0.2.1'",
        "blobfuse2: starting blobfuse2 version 2.4.1, mounting container lamps at /mnt/lamps",
        "fusermount3: failed to unmount /lamps: Device or resource busy",
        "methodName=storage.objects.list principal=lamp-sa status=OK",
        "googleapi: Error 403: Required 'compute.instances.get' permission for 'projects/lamp', forbidden",
        "[RunAI Streamer] Overall time to stream 12.8 GiB of all files: 9.1s (runai_model_streamer)",
    ],
)
def test_the_name_of_what_mounts_or_streams_a_bucket_is_no_failure(matcher: Matcher, said: str) -> None:
    assert classify(matcher, said).class_ is FailureClass.UNKNOWN


@pytest.mark.parametrize(
    "said",
    [
        "TypeError: LampModel.forward() got an unexpected keyword argument 'lamps'",
        "RuntimeError: value cannot be converted to type at::Half without overflow",
        "ctypes.ArgumentError: argument 1: TypeError: wrong type",
    ],
)
def test_what_python_says_of_a_call_is_no_flag_of_the_command_line(matcher: Matcher, said: str) -> None:
    """The words of argparse are the server's; those of a call inside it tell of a bug or of packages."""
    assert classify(matcher, said).class_ is not FailureClass.INVALID_FLAG


@pytest.mark.parametrize(
    "said",
    ["[Errno 28]", "Errno 28:", "write() errno=28", "errno: 28", "(os error 28)", "ENOSPC:", "[Errno 122]"],
)
def test_a_full_disk_is_known_by_its_number_whatever_the_language(matcher: Matcher, said: str) -> None:
    found = classify(matcher, f"OSError: {said} Der er ikke mere plads på enheden: '/models/x'")
    assert (found.class_, found.certain) == (FailureClass.DISK_FULL, True)


@pytest.mark.parametrize(
    "text",
    ["OSError: [Errno 28] inotify watch limit reached", "ENOSPC: System limit for number of file watchers reached"],
)
def test_watches_that_are_used_up_are_no_full_disk(matcher: Matcher, text: str) -> None:
    assert classify(matcher, text).class_ is not FailureClass.DISK_FULL


@pytest.mark.parametrize("said", ["Ignoring error: ", "(can safely be ignored) ", "non-fatal: ", "this is harmless: "])
def test_a_line_that_says_it_is_harmless_is_believed_and_others_are_not(matcher: Matcher, said: str) -> None:
    trouble = "[Errno 13] Permission denied: '/models/cache'"
    before = "INFO 05-06 07:08:09 [gpu_model_runner.py:26] Starting to load model x"
    assert classify(matcher, trouble).class_ == "weights_unreadable"
    assert not list(matcher.troubles([said.replace("this is", "is") + trouble]))
    assert classify(matcher, f"{before}\n{said.replace('this is', 'is')}{trouble}").class_ in {"benign", "unknown"}
    assert classify(matcher, f"{said.replace('this is', 'is')}{trouble}\n{trouble}").class_ == "weights_unreadable"


@pytest.mark.parametrize(
    ("frame", "class_"),
    [
        ("    with torch.cuda.graph(graph, pool=self.pool):", "gpu_oom_profile"),
        ('  File "torch/cuda/graphs.py", line 1, in capture_end', "gpu_oom_profile"),
        ('  File "uvicorn/protocols/http/h11_impl.py", line 1, in run_asgi', "gpu_oom_runtime"),
        ("ERROR:    Exception in ASGI application", "gpu_oom_runtime"),
        ('  File "x.py", line 1, in chat_completion_stream_generator', "gpu_oom_runtime"),
    ],
)
def test_frames_say_in_which_phase_memory_ran_out(matcher: Matcher, frame: str, class_: str) -> None:
    text = f"Traceback (most recent call last):\n{frame}\ntorch.OutOfMemoryError: CUDA out of memory."
    assert classify(matcher, text).class_ == class_


def test_pools_of_graphs_alone_leave_open_whether_it_starts_or_serves(matcher: Matcher) -> None:
    said = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB. 9 GiB is allocated by PyTorch, with 96.00 MiB allocated in private pools (e.g., CUDA Graphs)"
    assert not classify(matcher, said).certain
    capturing = "INFO 05-06 07:08:09 [x.py:1] GPU KV cache size: 8,192 tokens\n"
    assert classify(matcher, capturing + said).class_ is FailureClass.GPU_OOM_PROFILE


def test_a_log_that_lost_its_line_ends_is_read_record_by_record(matcher: Matcher) -> None:
    one = "INFO 05-06 07:08:09 metrics.py:3] Running: 2 reqs ERROR 05-06 07:09:10 a.py:5] Engine iteration timed out. This should never happen!"
    assert classify(matcher, "\n".join(log_lines(one))).class_ is FailureClass.ENGINE_HANG


@pytest.mark.slow
def test_what_was_asked_before_is_answered_the_same_by_text_kind_and_platform(catalogue: FailureCatalogue) -> None:
    """A remembered finding is the finding; the same words as a whole log, or elsewhere, are another question."""
    remembering = compile_catalogue(catalogue.signatures, catalogue.words)
    for text in (OOM, "nothing that anybody knows", "x" * (2 * MEMO_CHARS) + OOM):
        for whole_log in (False, True):
            for platform in (None, "cloud_run", "host"):
                fresh = compile_catalogue(catalogue.signatures, catalogue.words)
                told = [remembering.classify(text, whole_log=whole_log, platform=platform) for _ in range(2)]
                assert told == [fresh.classify(text, whole_log=whole_log, platform=platform)] * 2


def test_a_storm_of_one_line_is_read_once_and_what_is_remembered_is_bounded(catalogue: FailureCatalogue) -> None:
    matcher = compile_catalogue(catalogue.signatures, catalogue.words)
    first = classify(matcher, OOM)
    assert classify(matcher, OOM) is first
    for number in range(MEMO_TEXTS):
        classify(matcher, f"line {number}")
    assert classify(matcher, OOM) is not first
    long = OOM + "x" * MEMO_CHARS
    assert classify(matcher, long) is not classify(matcher, long)


COMPOSITES = json.loads((Path(__file__).parents[1] / "composites.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", COMPOSITES, ids=[row["id"] for row in COMPOSITES])
def test_whole_logs_of_platforms_replicas_and_restarts_get_class_and_fix(
    matcher: Matcher, row: dict[str, list[str]]
) -> None:
    """Invented logs of the kind that real ones are: restarts, several containers, Kubernetes, systemd, clouds."""
    found = matcher.classify("\n".join(row["lines"]), whole_log=False, platform=str(row["platform"]))
    assert found.class_ in row["classes"]
    assert any(same_fix(found.fix_actions[0], fix) for fix in row["fixes"])
