"""The knobs the series adds to vLLM and what they take: data of the tests, read by the driver and by the tests."""

from __future__ import annotations

SENTINEL = "VLLM_ENGINE_STALL_SENTINEL_S"

FLAG_INVALID = ["", "true", "yes", "2", "01"]


def _flag(default: bool) -> tuple[object, list[str], list[str]]:
    return default, ["1", "0"] if default else ["0", "1"], FLAG_INVALID


def _whole(default: int, minimum: int) -> tuple[object, list[str], list[str]]:
    return default, [str(minimum), str(default + 1)], ["", "1.5", "six", str(minimum - 1)]


# Name: default, valid settings (the last of them not the default), invalid settings.
SPEED_KNOBS: dict[str, tuple[object, list[str], list[str]]] = {
    "VLLM_MARLIN_TUNE": _flag(False),
    "VLLM_MARLIN_TUNE_DIR": ("", ["", "/tables"], []),
    "VLLM_MARLIN_REPACK_STAGED": (None, ["0", "1"], ["", "true"]),
    "VLLM_PREFILL_ATTN": ("", ["", "fp16", "int8"], ["INT8", "int4", "1"]),
    "VLLM_DRAFT_TOPK_TOPP": _flag(True),
    "VLLM_DRAFT_TEMP_SCALE": (1.0, ["1", "0.8"], ["", "0", "-1", "nan", "inf", "warm"]),
    "VLLM_DFLASH2_LOOKUP": _flag(False),
    "VLLM_DFLASH2_LOOKUP_NMIN": _whole(6, 1),
    "VLLM_DFLASH2_LOOKUP_NMAX": _whole(12, 1),
    "VLLM_DFLASH2_LOOKUP_NSTRONG": _whole(8, 1),
    "VLLM_DFLASH2_LOOKUP_AGREE": _whole(2, 0),
    "VLLM_DFLASH2_LOOKUP_NMIN_TAIL": _whole(4, 1),
    "VLLM_DFLASH2_LOOKUP_LONGMIN": _whole(6, 1),
    "VLLM_DFLASH2_LOOKUP_CHEAP_CTX": _whole(0, 0),
    "VLLM_DFLASH2_LOOKUP_SEARCH": _whole(1 << 30, 1),
    "VLLM_DFLASH2_LOOKUP_ADAPTIVE": _flag(True),
    "VLLM_DFLASH2_LOOKUP_STICKY": _whole(3, 0),
    "VLLM_DFLASH2_GRAPH_BOTH": _flag(True),
    "VLLM_DFLASH2_DRAFT_TOPK_TOPP": _flag(True),
    "VLLM_DFLASH2_CHAIN": _flag(False),
    "VLLM_DFLASH2_CHAIN_MINMATCH": _whole(8, 1),
    "VLLM_DFLASH2_CHAIN_LOG_SEC": (30.0, ["30", "0", "1.5"], ["", "-1", "nan", "inf"]),
    "VLLM_DFLASH2_CHAIN_GREEDY_ONLY": _flag(True),
    "VLLM_INT4_MQ_3D": _flag(False),
    "VLLM_INT4_MQ_3D_DEBUG": _flag(False),
    "VLLM_MAMBA_ALIGN_KEEP_CHECKPOINTS": _flag(False),
    "VLLM_VISION_CPU_OFFLOAD_GB": (0.0, ["0", "1.5"], ["", "-1", "nan", "inf", "all"]),
}

# Knobs that must not move the key, with a setting that is not their default.
RUNTIME_ONLY = {
    SENTINEL: "30",
    "VLLM_ENGINE_COMPLETION_LOG": "1",
    "VLLM_DFLASH2_CHAIN_LOG_SEC": "1",
    "VLLM_MAMBA_ALIGN_KEEP_CHECKPOINTS": "1",
    "VLLM_MARLIN_TUNE_DIR": "/tables",
    "VLLM_SPEC_DECODE_ATTN_CUDA": "1",
    "VLLM_ENGINE_READY_TIMEOUT_S": "601",
    "VLLM_DISABLE_LOG_LOGO": "1",
    "VLLM_LOG_MODEL_INSPECTION": "1",
    "VLLM_LOG_BATCHSIZE_INTERVAL": "5",
    "VLLM_GC_DEBUG": "1",
    "VLLM_PROCESS_NAME_PREFIX": "other",
    "VLLM_USAGE_SOURCE": "test",
    "VLLM_REGEX_COMPILATION_TIMEOUT_S": "9",
    "VLLM_TOOL_PARSE_REGEX_TIMEOUT_SECONDS": "9",
}
UPSTREAM_RUNTIME_ONLY = {name for name in RUNTIME_ONLY if name != SENTINEL and name not in SPEED_KNOBS} - {
    "VLLM_ENGINE_COMPLETION_LOG",
    "VLLM_SPEC_DECODE_ATTN_CUDA",
}
