"""One engine of the tree on PYTHONPATH, without a card: ``python drive.py CASE OUT``; saves what it generated, and its counters.

The models have few weights, random but for this: a token depends mostly on the one before it, so that greedy text runs into a
circle, which is what lookup drafting is for; and the multi-token prediction head says just that function, so that its drafts are
accepted.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import card

VOCABULARY, HIDDEN, BLOCK, DRAFTS = 320, 64, 4, 6
DENSE = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-6,
}
DFLASH = {
    **DENSE,
    "architectures": ["DFlash2DraftModel"],
    "block_size": BLOCK,
    "num_target_layers": 2,
    "dflash_config": {
        "selector_rank": 8,
        "selector_top_k": 4,
        "conv_kernel_size": 3,
        "conv_group_size": 8,
        "mask_token_id": VOCABULARY - 1,
        "target_layer_ids": [0, 1],
        "block_size": BLOCK,
    },
}
HYBRID = {
    "architectures": ["Qwen3_5ForCausalLM"],
    "model_type": "qwen3_5_text",
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "layer_types": ["linear_attention"] * 3 + ["full_attention"],
    "mtp_num_hidden_layers": 1,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
    "rms_norm_eps": 1e-6,
}
# Model, speculative config, type of the cache.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any] | None, str]] = {
    "dense": (DENSE, None, "auto"),
    "dense, dflash": (DENSE, {"method": "dflash", "num_speculative_tokens": DRAFTS}, "auto"),
    "dense, int8": (DENSE, None, "int8_per_token_head"),
    "dense, int8, dflash": (DENSE, {"method": "dflash", "num_speculative_tokens": DRAFTS}, "int8_per_token_head"),
    "hybrid": (HYBRID, None, "auto"),
    "hybrid, mtp": (HYBRID, {"method": "mtp", "num_speculative_tokens": 3}, "auto"),
}
SPREADS = {"dense": 0.02, "hybrid": 0.04}
# Prompt and answer of each request, in tokens; the interpreter takes seconds for a step of the hybrid.
LENGTHS = {"dense": [(70, 12), (17, 30), (5, 9)], "hybrid": [(20, 6), (9, 14), (5, 5)]}


def weigh(spread: float) -> Any:
    """What gives parameters their values, one after another as they are made; ``spread`` of what is in a layer."""
    import torch

    made = {"parameters": 0, "tables": 0}

    def give(parameter: torch.Tensor, *_: Any, **__: Any) -> None:
        made["parameters"] += 1
        seed = 100 + made["parameters"]
        if not parameter.is_floating_point():
            return
        table = parameter.shape == (VOCABULARY, HIDDEN)
        if table:  # embeddings and output heads in turn: a drafter's are the target's
            made["tables"] += 1
            seed = made["tables"] % 2
        noise = torch.rand(parameter.shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1
        if parameter.ndim < 2:
            values = 1 + noise / 20
        else:
            values = noise * (1.5 if table else spread) * (3 / parameter.shape[-1]) ** 0.5
            if parameter.shape == (HIDDEN, 2 * HIDDEN):  # what joins token and state before a drafting layer
                values = torch.cat([torch.eye(HIDDEN), torch.zeros(HIDDEN, HIDDEN)], 1)
        parameter.data.copy_(values)

    return give


def main(case: str, out: str) -> None:
    card.prepare()
    import torch
    from vllm import LLM, SamplingParams
    from vllm.model_executor.model_loader import dummy_loader

    model, speculative, cache = CASES[case]
    dummy_loader.initialize_single_dummy_weight = weigh(SPREADS[case.partition(",")[0]])
    launches = card.verify_launches()
    with tempfile.TemporaryDirectory() as work:
        paths = {}
        for name, config in (("target", model), ("draft", DFLASH)):
            paths[name] = Path(work) / name
            paths[name].mkdir()
            (paths[name] / "config.json").write_text(json.dumps(config))
        if speculative is not None and speculative["method"] == "dflash":
            speculative = {**speculative, "model": str(paths["draft"])}
        llm = LLM(
            model=str(paths["target"]),
            load_format="dummy",
            skip_tokenizer_init=True,
            enforce_eager=True,
            dtype="float32"
            if model is DENSE and cache == "auto"
            else "bfloat16",  # the recurrent layers know no float32
            kv_cache_dtype=cache,
            max_model_len=256,
            max_num_seqs=4,
            max_num_batched_tokens=64,  # the longest prompt comes in two pieces
            enable_prefix_caching=False,
            speculative_config=speculative,
            seed=0,
            disable_log_stats=False,
        )

        def answer(prompts: list[list[int]], lengths: list[tuple[int, int]]) -> list[list[int]]:
            params = [
                SamplingParams(temperature=0.0, max_tokens=length, ignore_eos=True, detokenize=False)
                for _, length in lengths
            ]
            asked = [{"prompt_token_ids": prompt} for prompt in prompts]
            return [list(found.outputs[0].token_ids) for found in llm.generate(asked, params, use_tqdm=False)]

        rng, lengths = random.Random(3), LENGTHS[case.partition(",")[0]]
        first = answer([[rng.randrange(300) for _ in range(prompt)] for prompt, _ in lengths], lengths)
        # What it said, and how it began: it goes on as it did.
        second = answer([text + text[:4] for text in first[:2]], [(0, len(text) - 4) for text in first[:2]])
        counters = {
            metric.name.removeprefix("vllm:spec_decode_num_"): getattr(metric, "value", getattr(metric, "values", None))
            for metric in llm.get_metrics()
            if metric.name.startswith("vllm:spec_decode_num_")
        }
        torch.save({"tokens": first + second, "verify launches": launches[0], **counters}, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
