"""An exception without a known text is told by the innermost frame whose work is known."""

import pytest

from agent.failures.match.matcher import Matcher

CORE = ("vllm/v1/engine/core.py", "run_engine_core")
LOAD = ("vllm/model_executor/model_loader/base_loader.py", "load_model")
MODEL = ("vllm/model_executor/models/lamp.py", "__init__")


def traceback(*frames: tuple[str, str], end: str) -> str:
    calls = "".join(f'  File "/srv/{file}", line 1, in {name}\n    work()\n' for file, name in frames)
    return f"Traceback (most recent call last):\n{calls}{end}"


@pytest.mark.parametrize(
    ("frames", "class_"),
    [
        (
            (("vllm/entrypoints/chat_utils.py", "apply_hf_chat_template"), ("jinja2/runtime.py", "call")),
            "chat_template_error",
        ),
        ((CORE, LOAD, MODEL, ("quantization/lamp.py", "create_weights")), "unsupported_dtype_or_quant"),
        ((CORE, LOAD, MODEL, ("torch/nn/modules/module.py", "__getattr__")), "unsupported_architecture"),
        ((CORE, ("quantization/lamp.py", "apply"), MODEL), "unsupported_architecture"),
        ((CORE, LOAD), "weights_unreadable"),
        ((CORE, ("vllm/v1/core/kv_cache_utils.py", "get_kv_cache_configs"), LOAD), "engine_dead"),
        ((CORE, ("transformers/configuration_utils.py", "from_dict")), "unsupported_architecture"),
        ((CORE, ("vllm/lora/lamp.py", "load")), "unsupported_architecture"),
        ((CORE, ("vllm/distributed/parallel_state.py", "init_distributed_environment")), "nccl_failure"),
        ((CORE, MODEL, ("sentencepiece/__init__.py", "LoadFromFile")), "weights_unreadable"),
        ((("vllm/v1/engine/core.py", "run_busy_loop"), ("vllm/v1/core/lamp.py", "glow")), "engine_dead"),
        ((("vllm/entrypoints/cli/serve.py", "cmd"), ("vllm/config/lamp.py", "__post_init__")), "invalid_flag"),
        ((("vllm/entrypoints/openai/cli_args.py", "validate_parsed_serve_args"),), "invalid_flag"),
        ((("vllm/config/lamp.py", "__post_init__"), ("srv/lamp.py", "glow")), "unknown"),
        ((("vllm/v1/worker/gpu_worker.py", "execute_model"), ("torch/lamp.py", "glow")), "engine_dead"),
        ((("srv/lamp.py", "glow"),), "unknown"),
        ((), "unknown"),
    ],
    ids=[
        "template", "quantisation", "model code", "model code inside quantisation", "loading", "a loader's file, once all is loaded", "transformers", "adapters", "ranks",
        "tokenizer", "serving", "settings", "arguments", "called by settings", "worker", "somebody's code", "none",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "end", ["KeyError: 'lamp'", "TypeError: lamp", "AttributeError: 'Lamp' object has no attribute 'x'"]
)
def test_an_exception_without_a_known_text_is_told_by_its_frames_and_never_by_its_type(
    matcher: Matcher, frames: tuple[tuple[str, str], ...], class_: str, end: str
) -> None:
    found = matcher.classify(traceback(*frames, end=end), whole_log=True, platform=None)
    assert found.class_ == class_
    assert not found.certain


@pytest.mark.parametrize(
    "said", ["takes 1 positional argument but 2 were given", "got an unexpected keyword argument 'x'"]
)
def test_a_call_that_a_loader_does_not_take_says_nothing_of_the_weights(matcher: Matcher, said: str) -> None:
    found = matcher.classify(
        traceback(CORE, LOAD, end=f"TypeError: read_weights() {said}"), whole_log=True, platform=None
    )
    assert (found.class_, found.fix_actions[0]) == ("unsupported_architecture", "upgrade_version")


def test_the_frames_say_more_than_the_end_of_the_engine_below_them(matcher: Matcher) -> None:
    ended = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    text = "Process EngineCore:\n" + traceback(CORE, LOAD, MODEL, end="ValueError: lamps want an even number") + "\n"
    found = matcher.classify(text + ended, whole_log=True, platform=None)
    assert found.class_ == "unsupported_architecture"
    nowhere = "Process EngineCore:\n" + traceback(CORE, end="ValueError: lamps want an even number") + "\n"
    assert matcher.classify(nowhere + ended, whole_log=True, platform=None).class_ == "engine_dead"


@pytest.mark.parametrize(
    ("said", "class_"),
    [
        ("lamps want an even number", "invalid_flag"),
        ("the dtype of a lamp is another", "unsupported_dtype_or_quant"),
        ("7 heads are too many", "tp_shape_mismatch"),
        ("no device was found for it", "unknown"),
    ],
)
def test_a_refused_setting_may_be_one_of_the_checkpoint_or_the_device(matcher: Matcher, said: str, class_: str) -> None:
    text = traceback(("vllm/config/lamp.py", "__post_init__"), end=f"ValueError: {said}")
    assert matcher.classify(text, whole_log=True, platform=None).class_ == class_


@pytest.mark.parametrize(
    ("frame", "said", "class_"),
    [
        (MODEL, "lamps are not supported", "unsupported_architecture"),
        (MODEL, "FP8 lamps are not supported", "unsupported_dtype_or_quant"),
        (MODEL, "pipeline parallelism is not supported for lamps", "invalid_flag"),
        (("vllm/config/lamp.py", "check"), "lamps are not supported", "invalid_flag"),
        (("quantization/lamp.py", "create_weights"), "lamps are not supported", "unsupported_dtype_or_quant"),
    ],
)
def test_what_is_not_supported_is_told_by_words_and_then_by_the_frame(
    matcher: Matcher, frame: tuple[str, str], said: str, class_: str
) -> None:
    """The source line that raises has the type alone: the words stand at the end."""
    text = traceback(CORE, LOAD, frame, end=f"NotImplementedError: {said}")
    text = text.replace("    work()\nNot", "    raise NotImplementedError(\nNot")
    assert matcher.classify(text, whole_log=True, platform=None).class_ == class_


@pytest.mark.parametrize(
    ("end", "class_"),
    [
        ("RuntimeError: can't open tensors in /data/quantization/awq-7b/lamp.bin", "unknown"),
        ("RuntimeError: lamp, /workspace/csrc/quantization/w8a8/lamp.cuh:62, lost", "unsupported_dtype_or_quant"),
        ("RuntimeError: mend it with pip install --force-reinstall lamp", "unknown"),
        ("RuntimeError: give it docker run --privileged", "unknown"),
        ("RuntimeError: lamps burn low, give it --bright-lamps", "invalid_flag"),
    ],
    ids=["a folder of weights", "a source file", "pip", "docker", "the server"],
)
def test_a_path_or_a_flag_counts_where_it_is_the_servers_own(matcher: Matcher, end: str, class_: str) -> None:
    text = traceback(("srv/lamp.py", "glow"), end=end)
    assert matcher.classify(text, whole_log=True, platform=None).class_ == class_


@pytest.mark.parametrize(
    ("frame", "fix"),
    [
        (("vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model"), "set_flag enforce_eager"),
        (("vllm/v1/worker/gpu_model_runner.py", "execute_model"), "none_code_bug"),
    ],
    ids=["while graphs are captured", "while a step runs"],
)
def test_what_the_driver_refuses_while_graphs_are_captured_does_not_come_in_eager_mode(
    matcher: Matcher, frame: tuple[str, str], fix: str
) -> None:
    text = traceback(CORE, frame, end="torch.AcceleratorError: CUDA error: lamps not permitted")
    assert matcher.classify(text, whole_log=True, platform=None).fix_actions[0] == fix
