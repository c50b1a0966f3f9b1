"""Whose top-k a drafter's candidates come from, for settings of FlashInfer's switch."""

from __future__ import annotations

import sys
import types
from typing import Any

import torch
from settings import knobs

SWITCH = "VLLM_USE_FLASHINFER_SAMPLER"


class OnDevice(torch.Tensor):
    """A tensor that says it is on a CUDA device."""

    is_cuda = True  # type: ignore[assignment]


def top_k(scores: torch.Tensor, k: int, **_: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Stands for FlashInfer's: an answer nobody else gives."""
    return torch.full((len(scores), k), -7.0), torch.full((len(scores), k), -7)


def chosen(setting: str | None, *, cuda: bool = True, installed: bool = True) -> dict[str, Any]:
    """What a candidate top-k of 3 gives where the platform is CUDA, or is not, and FlashInfer is installed, or is not."""
    from vllm.model_executor.layers import logits_processor as module

    keep, said = (module.current_platform, module.has_flashinfer, module.logger.info_once), []
    module.current_platform = types.SimpleNamespace(is_cuda=lambda: cuda)
    module.has_flashinfer = lambda: installed
    module.logger.info_once = lambda message, *_, **__: said.append(message)
    module._flashinfer_topk.cache_clear()
    sys.modules["flashinfer"] = types.SimpleNamespace(top_k=top_k)  # type: ignore[assignment]
    scores = torch.tensor([[1.0, 5.0, 3.0, 4.0], [9.0, 0.0, 8.0, 7.0]]).as_subclass(OnDevice)
    try:
        with knobs(**{SWITCH: setting}):
            values, ids = module._topk(scores, 3)
            module._topk(scores, 3)
    finally:
        module.current_platform, module.has_flashinfer, module.logger.info_once = keep
        del sys.modules["flashinfer"]
        module._flashinfer_topk.cache_clear()
    return {"values": values.as_subclass(torch.Tensor), "ids": ids.as_subclass(torch.Tensor), "said": said}


def collect(patched: bool) -> dict[str, Any]:
    """The same on either tree."""
    return {
        "unset": chosen(None),
        "1": chosen("1"),
        "0": chosen("0"),
        "0, not CUDA": chosen("0", cuda=False),
        "0, not installed": chosen("0", installed=False),
        "unset, not installed": chosen(None, installed=False),
    }
