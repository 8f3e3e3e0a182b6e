"""Whose line it is."""

import pytest

from agent.failures.text.streams import api_server_of, body_of, is_of_parallel, rank_of, server_of

LINE = "(APIServer pid=7) INFO 05-06 07:08:09 [a.py:1] it loads"


@pytest.mark.parametrize(
    ("prefix", "server"),
    [
        ("", ""),
        ("web-1  | ", "web-1"),
        ("llm_vllm.1.k2j3@node-4    | ", "llm_vllm.1.k2j3@node-4"),
        ("[pod/llm-7d9f8b6c5-x2x9k/vllm] ", "llm-7d9f8b6c5-x2x9k/vllm"),
        ("[llm-7d9f8b6c5-x2x9k] ", "llm-7d9f8b6c5-x2x9k"),
        ("[instance/00bf4bf02d] ", "00bf4bf02d"),
        ("llm-7d9f8b6c5-x2x9k vllm ", "llm-7d9f8b6c5-x2x9k vllm"),
        ("llm-0 vllm ", "llm-0 vllm"),
        ("llm-0 ", "llm-0"),
        ("llm-7d9f8b6c5-x2x9k ", "llm-7d9f8b6c5-x2x9k"),
        ("May 06 07:08:09 gpu-host-3 vllm[42]: ", "gpu-host-3/vllm"),
        ("2031-05-06T07:08:09+0000 gpu-host-3 vllm[42]: ", "gpu-host-3/vllm"),
        ("5月 06 07:08:09 gpu-host-3 vllm[42]: ", "gpu-host-3/vllm"),
        ("gpu-host-3 vllm[42]: ", "gpu-host-3/vllm"),
        ("May 06 07:08:09 gpu-host-3 llm[42]: web-1 | ", "gpu-host-3/llm/web-1"),
        ("<34>1 2031-05-06T07:08:09Z gpu-host-3 vllm 42 - - ", "gpu-host-3 vllm"),
        ("2031-05-06T07:08:09.123+00:00 vllm/vllm/0123456789abcdef ", "vllm/vllm/0123456789abcdef"),
        ("2031-05-06T07:08:09.123+00:00 i-0123456789abcdef0 ", "i-0123456789abcdef0"),
        ("(ServeReplica:llm:Deployment pid=42) ", "(ServeReplica:llm:Deployment pid=42)"),
        ("2031-05-06T07:08:09.123456789Z ", ""),
        ("2031-05-06T07:08:09.123456789Z stdout F ", ""),
        ("web-1 | 2031-05-06T07:08:09.123Z ", "web-1"),
        ("2031-05-06T07:08:09.123Z web-1 | ", "web-1"),
        ("[2031-05-06 07:08:09,123] ", ""),
        ("May  6 07:08:09 ", ""),
        ("[Tue May  6 07:08:09 2031] ", ""),
        ("[   77.123456] ", ""),
        ("1936000000.123456 ", ""),
    ],
)
def test_the_collector_names_the_server_and_the_rest_is_the_line(prefix: str, server: str) -> None:
    assert server_of(prefix + LINE) == server
    assert body_of(prefix + LINE) == LINE


@pytest.mark.parametrize(
    "line",
    [
        "Loading safetensors checkpoint shards:  20% Completed | 1/5 [04:01<16:04, 241.00s/it]",
        "Downloading shards: 100%|##########| 12/12 [03:12<00:00, 16.0s/it]",
        "torch.OutOfMemoryError: CUDA out of memory. | 3",
        "| NVIDIA-SMI 550.1 |",
        '  File "/srv/x.py", line 1, in load_model',
        "[rank0]: ValueError: no",
        "gemma-4-12b-it loads",
        "",
    ],
)
def test_ordinary_lines_name_no_server(line: str) -> None:
    assert server_of(line) == ""


def test_processes_of_one_start_are_one_server_and_the_api_server_says_which_start() -> None:
    assert server_of("(EngineCore pid=8) x") == server_of("(APIServer pid=7) x")
    assert api_server_of("web-1 | (APIServer pid=7) x") == ("APIServer", "7")
    assert api_server_of("(ApiServer_3 pid=9) x") == ("ApiServer_3", "9")
    assert api_server_of("(EngineCore pid=8) x") is None


def test_a_hostile_line_costs_little() -> None:
    for line in ("a-" * 50_000, "[" * 50_000, "a" * 50_000 + "|", "May " * 20_000, "\ud800 | x"):
        assert isinstance(server_of(line), str)


@pytest.mark.parametrize("prefix", ["llm-0 ", "llm-0 vllm ", "[pod/llm-0/vllm] ", "web-1 | "])
def test_a_frame_belongs_to_the_server_that_its_exception_belongs_to(prefix: str) -> None:
    frame, error = '  File "/v/core.py", line 7, in run_busy_loop', "ERROR 05-06 07:08:09 [core.py:7] it ends"
    assert server_of(prefix + frame) == server_of(prefix + error) != ""
    assert server_of("llm-0   1/1   Running   0   5m") == ""


@pytest.mark.parametrize(
    ("line", "rank", "parallel"),
    [
        (LINE.replace("it loads", "Engine 003: Avg prompt throughput: 9.0 tokens/s"), 3, False),
        ("(EngineCore pid=7) it loads", 0, False),
        ("(EngineCore_1 pid=7) it loads", 1, False),
        ("(EngineCore_DP0 pid=7) it loads", 0, True),
        ("web-1  | (EngineCore_DP2 pid=7) it loads", 2, True),
        ("(Worker_DP1_TP0_EP2 pid=7) it loads", 1, True),
        ("(Worker_TP1 pid=7) it loads", None, False),
        (LINE, None, False),
        ("EngineDeadError: it is out", None, False),
    ],
)
def test_statistics_and_processes_say_which_engine(line: str, rank: int | None, parallel: bool) -> None:
    assert (rank_of(line), is_of_parallel(line)) == (rank, parallel)
