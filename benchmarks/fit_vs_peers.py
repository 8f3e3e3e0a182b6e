"""P10: our prediction beside hf-mem's on the same recorded start-ups.

    python benchmarks/fit_vs_peers.py [--hf-mem PYTHON] [--exceptions]

PYTHON is an interpreter that has hf-mem; without it one is made in a temporary venv. hf-mem reads a repository's
config.json and tensor headers over the network; here its own functions are given the same two things made from our
catalogue (config keys as published, one header per tensor group), so that no network is needed. It estimates a
checkpoint's bytes and a KV cache for a context; tokens of a pool follow as pool x context / cache.
--exceptions prints the table of rows that a promise leaves out, as docs/fit.md shows it.
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.bounds import GIB
from agent.fit.flags.flags import Flags
from agent.fit.memory.weights import device_tensors
from agent.fit.model_and_hardware import AttentionKind

ROOT = Path(__file__).parents[1]

THEIRS = """
import json, sys
from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size
from hf_mem.safetensors.metadata import parse_safetensors_metadata
for line in sys.stdin:
    row = json.loads(line)
    cache = compute_safetensors_kv_cache_size(row["config"], row["dtype"], row["length"]) if row["length"] else None
    stored = parse_safetensors_metadata({"model": row["header"]}).bytes_count
    print(json.dumps({"id": row["id"], "cache": cache, "weights": stored}))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hf-mem", metavar="PYTHON")
    parser.add_argument("--exceptions", action="store_true")
    args = parser.parse_args()
    observed = load_observed()
    catalogue = load_fit_catalogue()
    rows = observed.rows()
    compared = [found for row in rows if (found := observed.compare(row, catalogue)) is not None]
    if args.exceptions:
        print(observed.table(compared))
        return
    with tempfile.TemporaryDirectory() as folder:
        python = args.hf_mem or install(folder)
        theirs = ask_hf_mem(python, [question(row, observed, catalogue) for row in rows if known(row, observed)])
    show(compared, {row["id"]: row for row in rows}, theirs)


def load_observed():
    spec = importlib.util.spec_from_file_location("observed", ROOT / "tests/agent/fit/observed.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["observed"] = module
    spec.loader.exec_module(module)
    return module


def install(folder):
    venv.create(folder, with_pip=True)
    python = Path(folder) / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "hf-mem"], check=True)
    return python


def known(row, observed):
    return row["model"] in observed.NOTES["models"]


def question(row, observed, catalogue):
    model = catalogue.models.find(observed.NOTES["models"][row["model"]])
    first = next(layer for layer in model.layers if layer.heads)
    kinds = [layer.kind for layer in model.layers for _ in range(layer.count)]
    sliding = [layer for layer in model.layers if layer.kind is AttentionKind.SLIDING]
    widest = max(model.layers, key=lambda layer: layer.kv_heads) if sliding else first
    config = {
        "hidden_size": model.hidden,
        "num_hidden_layers": model.layer_count,
        "num_attention_heads": first.heads,
        "num_key_value_heads": widest.kv_heads,
        "head_dim": widest.head_dim,
        "layer_types": ["full_attention" if kind is AttentionKind.FULL else "sliding_attention" for kind in kinds],
        "sliding_window": sliding[0].window_tokens if sliding else None,
    }
    header = {}
    for index, tensor in enumerate(device_tensors(model, Flags())):
        stored = tensor.stored_params
        quantised = tensor.group in model.quant.groups
        size = int(stored * model.quant.bytes_per_param) if quantised else stored
        header[f"{tensor.group}.{index}"] = {
            "dtype": "U8" if quantised else "BF16",
            "shape": [size],
            "data_offsets": [0, 0],
        }
    fp8 = "fp8" in str(row["flags"]["kv_cache_dtype"])
    length = row["flags"]["max_model_len"] or model.max_position
    return {
        "id": row["id"],
        "config": config,
        "header": header,
        "length": length,
        "dtype": "F8_E4M3" if fp8 else "BF16",
        "unpublished": model.served_bytes is not None,
    }


def ask_hf_mem(python, questions):
    text = "\n".join(json.dumps(each) for each in questions)
    done = subprocess.run([python, "-c", THEIRS], input=text, stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    asked = {each["id"]: each for each in questions}
    stated = ("length", "unpublished")
    return {each["id"]: {**each, **{key: asked[each["id"]][key] for key in stated}} for each in answers}


def show(compared, rows, theirs):
    ours_w, theirs_w, ours_t, theirs_t = [], [], [], []
    print(f"{'row':<8} {'model':<46} {'weights ours':>12} {'hf-mem':>8} {'tokens ours':>12} {'hf-mem':>9}")
    for each in compared:
        row, other = rows[each.id], theirs[each.id]
        weights = tokens = None
        if each.weights is not None and not other["unpublished"]:
            weights = other["weights"] / max(1, row["tp"]) / GIB / row["weights_gib"] - 1
        if each.pool_tokens is not None and other["cache"]:
            pool = row["available_kv_gib"] * GIB * max(1, row["tp"])
            tokens = pool * other["length"] / other["cache"] / row["kv_tokens"] - 1
        if weights is None and tokens is None:
            continue
        print(
            f"{each.id:<8} {each.model:<46} {share(each.weights):>12} {share(weights):>8} "
            f"{share(each.pool_tokens):>12} {share(tokens):>9}"
        )
        collect(each, "weights", weights, ours_w, theirs_w)
        collect(each, "pool_tokens", tokens, ours_t, theirs_t)
    for name, ours, others in (("weights", ours_w, theirs_w), ("tokens of the printed pool", ours_t, theirs_t)):
        print(
            f"{name}: ours median {100 * statistics.median(ours):.2f} % worst {100 * max(ours):.2f} %, "
            f"hf-mem median {100 * statistics.median(others):.2f} % worst {100 * max(others):.2f} % ({len(ours)} rows)"
        )


def collect(each, promise, other, ours, others):
    if other is not None and each.counts(promise):
        ours.append(abs(getattr(each, promise)))
        others.append(abs(other))


def share(value):
    return "" if value is None else f"{100 * value:+.1f} %"


if __name__ == "__main__":
    main()
