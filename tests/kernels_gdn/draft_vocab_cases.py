"""Qwen3.5's MTP drafter with a head cut to a list of tokens: what it makes of checkpoints, and what it scores."""

from __future__ import annotations

import logging
import tempfile
import types
from pathlib import Path
from typing import Any

import torch
from settings import knobs

KNOB, VOCAB, HIDDEN = "VLLM_MTP_DRAFT_VOCAB", 100, 16
IDS = [97, 3, 41, 0, 99, 12, 58]


def randn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


FULL, CUT, STATES = randn(VOCAB, HIDDEN, seed=1), randn(len(IDS), HIDDEN, seed=2), randn(9, HIDDEN, seed=3)


def start() -> Any:
    """One process of vLLM's, with nothing in parallel; returns a configuration to build models under."""
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.distributed import init_distributed_environment, initialize_model_parallel

    config = VllmConfig()
    with set_current_vllm_config(config):
        init_distributed_environment(1, 0, f"file://{tempfile.mktemp()}", 0, "gloo")
        initialize_model_parallel()
    return config


class Layers(torch.nn.Module):
    """Stands for the drafter's layers, whose weights are not the question here."""

    def __init__(self, **_: Any):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4, bias=False)
        self.make_empty_intermediate_tensors = None


def build(config: Any, folder: Path) -> Any:
    """The drafter of the checkpoint in ``folder``."""
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.models import qwen3_5_mtp as module

    module.Qwen3_5MultiTokenPredictor = Layers
    text = types.SimpleNamespace(vocab_size=VOCAB, hidden_size=HIDDEN, tie_word_embeddings=False)
    made = types.SimpleNamespace(
        model_config=types.SimpleNamespace(hf_text_config=text, model=str(folder), revision=None),
        cache_config=types.SimpleNamespace(mamba_cache_mode="none"),
        quant_config=None,
        compilation_config=config.compilation_config,
    )
    with set_current_vllm_config(config):
        return module.Qwen3_5MTP(vllm_config=made)


def weights(cut: bool) -> list[tuple[str, torch.Tensor]]:
    """A checkpoint's tensors, as far as the drafter reads them."""
    found = [("lm_head.weight", FULL), ("mtp.norm.weight", torch.ones(4)), ("model.layers.0.x", torch.ones(1))]
    return [*found, *([("mtp.draft_lm_head.weight", CUT)] if cut else [])]


def scored(config: Any, setting: str | None, ids: torch.Tensor | bytes | None, cut: bool) -> dict[str, Any]:
    """Logits and best tokens of a drafter with this knob, this list and these tensors; or the error."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("vllm")
    logger.addHandler(handler)
    try:
        with tempfile.TemporaryDirectory() as name, knobs(**{KNOB: setting}):
            path = Path(name) / "mtp_draft_vocab_ids.pt"
            if isinstance(ids, bytes):
                path.write_bytes(ids)
            elif ids is not None:
                torch.save(ids, path)
            model = build(config, Path(name))
            loaded = model.load_weights(iter(weights(cut)))
            logits, top = model.compute_logits(STATES), model.get_top_tokens(STATES)
            return {"logits": logits, "top": top, "loaded": sorted(loaded), "said": said}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "said": said}
    finally:
        logger.removeHandler(handler)


def settings() -> dict[str, Any]:
    import vllm.envs as envs

    found: dict[str, Any] = {}
    for setting in (None, "0", "1", "yes"):
        with knobs(**{KNOB: setting}):
            try:
                found[str(setting)] = getattr(envs, KNOB)
            except (ValueError, AttributeError) as error:
                found[str(setting)] = str(error)
    return found


def collect(patched: bool) -> dict[str, Any]:
    """On either tree; only the patched one knows the list."""
    config, ids = start(), torch.tensor(IDS)
    seen: dict[str, Any] = {
        "unset, plain": scored(config, None, None, cut=False),
        "unset, with a cut head": scored(config, None, ids, cut=True),
        "1, with a cut head": scored(config, "1", ids, cut=True),
        "settings": settings(),
    }
    if patched:
        seen["1, plain"] = scored(config, "1", None, cut=False)
        seen["1, a list and no tensors"] = scored(config, "1", ids, cut=False)
        bad = {
            "a token outside": torch.tensor([1, VOCAB]),
            "a negative one": torch.tensor([1, -1]),
            "one twice": torch.tensor([4, 5, 4]),
            "32 bits": ids.int(),
            "two dimensions": ids[None],
            "nothing": ids[:0],
            "no tensor": {"ids": [1]},
            "no file of torch's": b"hello",
        }
        seen["bad"] = {name: scored(config, "1", value, cut=True) for name, value in bad.items()}
    return seen
