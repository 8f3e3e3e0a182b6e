"""Tiny models with random weights and a tokenizer of their own, built on this machine; nothing is downloaded.

Run with the lab's own Python (it has torch, safetensors and tokenizers): lab_models.py FOLDER
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB = 512
SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]
TEXT = ["one two three four five six seven eight nine ten, and so on until the tokenizer has seen enough of it"]
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "
COMMON = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
    "vocab_size": VOCAB,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
LLAMA = COMMON | {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
}
FAT = LLAMA | {"num_hidden_layers": 16, "num_key_value_heads": 4, "head_dim": 128}  # 32 KiB of cache for each token
GEMMA = COMMON | {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0,
    "sliding_window": 512,
    "layer_types": ["sliding_attention", "full_attention"],
    "query_pre_attn_scalar": 32,
    "hidden_activation": "gelu_pytorch_tanh",
}
MODELS = {"real-llama": LLAMA, "cut-llama": LLAMA, "fatkv-llama": FAT, "tiny-gemma3": GEMMA}


def build(folder: Path, config: dict[str, object]) -> None:
    """Write config, tokenizer and weights of one model."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "generation_config.json").write_text(
        json.dumps({"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0})
    )
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        TEXT * 20, trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=SPECIAL, initial_alphabet=letters)
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": "<bos>",
                "eos_token": "<eos>",
                "pad_token": "<pad>",
                "unk_token": "<unk>",
                "model_max_length": 131072,
                "chat_template": TEMPLATE,
            }
        )
    )
    save_file(weights(config), str(folder / "model.safetensors"), metadata={"format": "pt"})


def weights(config: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Random tensors in the shapes of a Llama or Gemma 3 checkpoint, the same ones each time."""
    made = torch.Generator().manual_seed(1)
    hidden, inner, head = int(config["hidden_size"]), int(config["intermediate_size"]), int(config["head_dim"])
    queries, keys = int(config["num_attention_heads"]) * head, int(config["num_key_value_heads"]) * head
    gemma = config["model_type"] == "gemma3_text"
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCAB, hidden), "model.norm.weight": (hidden,)}
    for layer in range(int(config["num_hidden_layers"])):
        at = f"model.layers.{layer}"
        shapes |= {
            f"{at}.self_attn.q_proj.weight": (queries, hidden),
            f"{at}.self_attn.k_proj.weight": (keys, hidden),
            f"{at}.self_attn.v_proj.weight": (keys, hidden),
            f"{at}.self_attn.o_proj.weight": (hidden, queries),
            f"{at}.mlp.gate_proj.weight": (inner, hidden),
            f"{at}.mlp.up_proj.weight": (inner, hidden),
            f"{at}.mlp.down_proj.weight": (hidden, inner),
            f"{at}.input_layernorm.weight": (hidden,),
            f"{at}.post_attention_layernorm.weight": (hidden,),
        }
        if gemma:
            shapes |= {
                f"{at}.pre_feedforward_layernorm.weight": (hidden,),
                f"{at}.post_feedforward_layernorm.weight": (hidden,),
                f"{at}.self_attn.q_norm.weight": (head,),
                f"{at}.self_attn.k_norm.weight": (head,),
            }
    return {
        name: (torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=made) * 0.5).to(torch.bfloat16)
        for name, shape in shapes.items()
    }


if __name__ == "__main__":
    for model, settings in MODELS.items():
        build(Path(sys.argv[1]) / model, settings)
        print(Path(sys.argv[1]) / model)
