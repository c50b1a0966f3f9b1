"""Two small models with random weights, made on the spot: ``python tiny.py DIRECTORY``.

The weights are large enough for the text to vary, so that a wrong token shows.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

WORDS = "the quick brown fox jumps over the lazy dog while a clever cat sleeps under an old oak tree "
SIZES = {
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "initializer_range": 0.3,
    "tie_word_embeddings": False,
}


def tokenizer(folder: Path) -> None:
    """A byte-level BPE with a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE(unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZES["vocab_size"],
        special_tokens=["<unk>", "<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    raw.train_from_iterator([WORDS * 20], trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", eos_token="<|endoftext|>")
    made.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
    made.save_pretrained(folder)


def save(folder: Path, architecture: Any, config: Any) -> None:
    import torch

    torch.manual_seed(20)
    architecture(config).to(torch.bfloat16).save_pretrained(folder)
    # The defaults transformers saves beside a model would reach the sampling parameters.
    (folder / "generation_config.json").unlink(missing_ok=True)


def main(directory: Path) -> None:
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig, Qwen3Config, Qwen3ForCausalLM

    dense, hybrid = directory / "tiny-dense", directory / "tiny-hybrid"
    shutil.rmtree(directory, ignore_errors=True)
    for folder in (dense, hybrid):
        folder.mkdir(parents=True)
        tokenizer(folder)
    save(dense, Qwen3ForCausalLM, Qwen3Config(**SIZES, head_dim=32, architectures=["Qwen3ForCausalLM"]))
    config = Qwen3_5TextConfig(
        **SIZES,
        head_dim=64,
        linear_num_key_heads=1,
        linear_num_value_heads=2,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        layer_types=["linear_attention"] * 3 + ["full_attention"],
        architectures=["Qwen3_5ForCausalLM"],
    )
    save(hybrid, Qwen3_5ForCausalLM, config)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
