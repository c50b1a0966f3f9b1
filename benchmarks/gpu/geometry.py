"""The 27B hybrid as a model directory without weights: ``python benchmarks/gpu/geometry.py DIRECTORY [--small]``.

A ``config.json`` and a tokenizer trained on the spot are all an engine needs with ``load_format="dummy"``.  Speed depends on the
shapes alone, but for what the drafts are worth: nothing of what random weights draft is right.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORDS = "the quick brown fox jumps over the lazy dog while a clever cat sleeps under an old oak tree "


@dataclass(frozen=True)
class Geometry:
    """The sizes of a Qwen3.5 text model; ``interval`` is that of the layers with full attention."""

    layers: int
    interval: int
    hidden: int
    intermediate: int
    vocabulary: int
    heads: int
    kv_heads: int
    head_dim: int
    key_heads: int
    value_heads: int
    linear_dim: int
    positions: int
    convolution: int = 4
    mtp_layers: int = 1

    @property
    def kinds(self) -> list[str]:
        """What attends in each layer."""
        return ["linear_attention" if (index + 1) % self.interval else "full_attention" for index in range(self.layers)]


FULL = Geometry(
    layers=64,
    interval=4,
    hidden=5120,
    intermediate=17408,
    vocabulary=248320,
    heads=24,
    kv_heads=4,
    head_dim=256,
    key_heads=16,
    value_heads=48,
    linear_dim=128,
    positions=262144,
)
SMALL = Geometry(
    layers=4,
    interval=4,
    hidden=64,
    intermediate=128,
    vocabulary=512,
    heads=2,
    kv_heads=2,
    head_dim=64,
    key_heads=1,
    value_heads=2,
    linear_dim=128,
    positions=4096,
)


def config(geometry: Geometry) -> dict[str, Any]:
    """What ``config.json`` says, in the names of vLLM's ``Qwen3_5TextConfig``.

    ``mtp_num_hidden_layers`` is what ``{"method": "mtp"}`` looks for; without it the target has nothing to draft with.
    """
    return {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "torch_dtype": "bfloat16",
        "vocab_size": geometry.vocabulary,
        "hidden_size": geometry.hidden,
        "intermediate_size": geometry.intermediate,
        "num_hidden_layers": geometry.layers,
        "num_attention_heads": geometry.heads,
        "num_key_value_heads": geometry.kv_heads,
        "head_dim": geometry.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": geometry.positions,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "attn_output_gate": True,
        "full_attention_interval": geometry.interval,
        "layer_types": geometry.kinds,
        "linear_conv_kernel_dim": geometry.convolution,
        "linear_key_head_dim": geometry.linear_dim,
        "linear_value_head_dim": geometry.linear_dim,
        "linear_num_key_heads": geometry.key_heads,
        "linear_num_value_heads": geometry.value_heads,
        "mtp_num_hidden_layers": geometry.mtp_layers,
        "partial_rotary_factor": 0.25,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25},
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": None,
    }


def parameters(geometry: Geometry) -> dict[str, int]:
    """Weights by part: ``target`` with its embedding and head, of which ``read`` are read for a token, and ``mtp``.

    The drafter shares the target's embedding and head, which are not counted twice.
    """
    hidden, width = geometry.hidden, geometry.heads * geometry.head_dim
    # The gate of the output is as wide as the queries and comes with them.
    full = hidden * (2 * width + 2 * geometry.kv_heads * geometry.head_dim) + width * hidden + 2 * geometry.head_dim
    keys, values = geometry.key_heads * geometry.linear_dim, geometry.value_heads * geometry.linear_dim
    linear = hidden * (2 * keys + 2 * values + 2 * geometry.value_heads) + values * hidden
    linear += (2 * keys + values) * geometry.convolution + 2 * geometry.value_heads + geometry.linear_dim
    rest = 3 * hidden * geometry.intermediate + 2 * hidden
    attention = {"full_attention": full, "linear_attention": linear}
    layers = sum(attention[kind] + rest for kind in geometry.kinds)
    table = geometry.vocabulary * hidden
    return {
        "target": layers + hidden + 2 * table,
        "read": layers + hidden + table,
        "mtp": geometry.mtp_layers * (full + rest) + 2 * hidden * hidden + 3 * hidden,
    }


def write_tokenizer(directory: Path) -> None:
    """A byte-level BPE; prompts are given as ids, so its few hundred tokens are enough for any vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<unk>", "<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([WORDS * 20], trainer)
    made.save(str(directory / "tokenizer.json"))
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": "<unk>",
        "eos_token": "<|endoftext|>",
        "model_max_length": 1 << 20,
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(described))


def write(geometry: Geometry, directory: Path) -> None:
    """The model directory, made where it is not there yet."""
    directory.mkdir(parents=True, exist_ok=True)
    write_tokenizer(directory)
    (directory / "config.json").write_text(json.dumps(config(geometry), indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--small", action="store_true", help="4 layers, for a CPU")
    given = parser.parse_args()
    geometry = SMALL if given.small else FULL
    write(geometry, given.directory)
    counted = parameters(geometry)
    print(", ".join(f"{name}: {count / 1e9:.3f}e9" for name, count in counted.items()))


if __name__ == "__main__":
    main()
