"""Where the engine meets the verify attention: which layers and batches get it, and that they hand it what it reads."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import vllm.envs as envs
from batches import make_batch, relative_error
from vllm.v1.attention.ops import spec_decode_attn as ops

with warnings.catch_warnings():
    # The backends import much of the engine and of torch, with warnings of their own.
    warnings.simplefilter("ignore")
    import vllm.config
    import vllm.platforms
    from vllm.v1.attention.backend import AttentionType
    from vllm.v1.attention.backends import flash_attn, triton_attn

HEADS, KV_HEADS, SIZE, BLOCK = 6, 2, 64, 16
KV_LENS, Q_LENS = [300, 33, 70], [4, 2, 3]


class Stock(Exception):
    """The batch went where it goes without the patches."""


def stock(*_: Any, **__: Any) -> None:
    raise Stock


def made() -> ops.SpecDecodeAttention:
    return ops.SpecDecodeAttention(HEADS, KV_HEADS, SIZE, 16, torch.device("cpu"), 8, pdl=False)


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Both backends are offered the kernels; the geometries they asked about. Their stock kernels are out of reach."""
    asked: list[tuple[int, ...]] = []

    def offer(*geometry: int) -> ops.SpecDecodeAttention:
        asked.append(geometry)
        return made()

    for backend in (flash_attn, triton_attn):
        monkeypatch.setattr(backend, "spec_decode_attention", offer)
    monkeypatch.setattr(flash_attn, "flash_attn_varlen_func", stock, raising=False)
    monkeypatch.setattr(triton_attn, "unified_attention", stock)
    monkeypatch.setattr(flash_attn, "get_flash_attn_version", lambda **_: 3, raising=False)
    monkeypatch.setattr(flash_attn, "flash_attn_supports_quant_query_input", lambda: False, raising=False)
    monkeypatch.setattr(flash_attn, "flash_attn_supports_sinks", lambda: True, raising=False)
    monkeypatch.setattr(flash_attn, "flash_attn_supports_kv_cache_dtype", lambda *_, **__: True, raising=False)
    return asked


def layer(backend: str, **how: Any) -> Any:
    given = {"alibi_slopes": None, "sliding_window": None, **how}
    if backend == "flash":
        impl = flash_attn.FlashAttentionImpl
        given.setdefault("kv_cache_dtype", "auto")
    else:
        impl = triton_attn.TritonAttentionImpl
        given.setdefault("kv_cache_dtype", "int8_per_token_head")
    return impl(HEADS, SIZE, SIZE**-0.5, KV_HEADS, **given)


LAYER = SimpleNamespace(_q_scale=torch.ones(1), _k_scale=torch.ones(1), _v_scale=torch.ones(1))


def metadata(backend: str, batch: Any, **how: Any) -> Any:
    known = {
        "num_actual_tokens": sum(Q_LENS),
        "max_query_len": batch.longest_query,
        "query_start_loc": batch.q_starts,
        "max_seq_len": max(KV_LENS),
        "seq_lens": batch.kv_lens,
        "block_table": batch.table,
        "slot_mapping": None,
        "use_cascade": False,
        "common_prefix_len": 0,
        "cu_prefix_query_lens": None,
        "prefix_kv_lens": None,
        "suffix_kv_lens": None,
        "causal": True,
    }
    if backend == "flash":
        return flash_attn.FlashAttentionMetadata(**known | how)
    buffers = dict.fromkeys(("softmax_segm_output", "softmax_segm_max", "softmax_segm_expsum"))
    return triton_attn.TritonAttentionMetadata(
        **known | buffers | {"seq_threshold_3D": 0, "num_par_softmax_segments": 0} | how
    )


def verify_batch(backend: str) -> Any:
    dtype = torch.float32 if backend == "flash" else torch.bfloat16
    return make_batch(KV_LENS, Q_LENS, heads=HEADS, kv_heads=KV_HEADS, head_size=SIZE, dtype=dtype, seed=4)


def forward(impl: Any, backend: str, batch: Any, cache: torch.Tensor, scale: Any = None, **how: Any) -> torch.Tensor:
    out = batch.poisoned()
    none = torch.empty(0)
    impl.forward(LAYER, batch.query, none, none, cache, metadata(backend, batch, **how), out, output_scale=scale)
    return out


def engine_cache(backend: str, impl: Any, batch: Any) -> torch.Tensor:
    """The batch's keys and values in a cache as the engine allocates it; quantised by upstream's own kernel.

    Slots no request owns have scales of NaN, which all bits set are.
    """
    blocks = batch.cache.shape[0]
    if backend == "flash":
        return batch.cache.transpose(1, 2)
    cache = torch.full((blocks, KV_HEADS, BLOCK, 2 * (SIZE + 4)), -1, dtype=torch.int8)
    owned = batch.keys.flatten(0, 1)[:, 0, 0].isfinite()
    slots = torch.where(owned, torch.arange(blocks * BLOCK), -1)
    impl.do_kv_cache_update(LAYER, batch.keys.flatten(0, 1), batch.values.flatten(0, 1), cache, slots)
    values, scales = cache.unflatten(-1, (2, SIZE + 4))[..., :SIZE], cache.view(torch.float32)
    scales = scales.unflatten(-1, (2, SIZE // 4 + 1))[..., -1:]
    batch.cache = (values.double() * scales.double()).flatten(-2).transpose(1, 2)
    return cache


@pytest.mark.parametrize("backend", ["flash", "triton"])
def test_a_verify_batch_goes_to_the_kernels_and_comes_out_right(backend: str, offered: list[Any]) -> None:
    impl, batch = layer(backend), verify_batch(backend)
    assert offered == [(HEADS, KV_HEADS, SIZE)]
    cache = engine_cache(backend, impl, batch)
    bound = 5e-6 if backend == "flash" else 1e-2
    assert relative_error(forward(impl, backend, batch, cache), batch.expected()) < bound


@pytest.mark.parametrize("backend", ["flash", "triton"])
@pytest.mark.parametrize(
    "how",
    [
        {"max_query_len": 1},
        {"max_query_len": 17},
        {"causal": False},
        {"causal": torch.ones(3, dtype=torch.bool)},
        {"rswa_prefix_lens": torch.zeros(3, dtype=torch.int32)},
        {"mm": torch.zeros(3, 1, 2, dtype=torch.int32)},
        {"scale": torch.ones(1)},
    ],
    ids=" ".join,
)
def test_other_batches_go_where_they_went(backend: str, how: dict[str, Any], offered: list[Any]) -> None:
    impl, batch, how = layer(backend), verify_batch(backend), dict(how)
    cache = batch.cache.transpose(1, 2)
    if backend == "triton":
        cache = torch.zeros(*cache.shape[:3], 2 * (SIZE + 4), dtype=torch.int8)
    if "mm" in how:
        name = "mm_prefix_query_range_tensor" if backend == "flash" else "mm_prefix_range_tensor"
        how[name] = how.pop("mm")
    # FlashAttention 3 itself refuses what it cannot do: before the hook, or after it.
    with pytest.raises((Stock, NotImplementedError)):
        forward(impl, backend, batch, cache, **how)


def test_a_batch_the_table_leaves_to_flash_attention(offered: list[Any]) -> None:
    impl, batch = layer("flash"), verify_batch("flash")
    seen = []
    impl.spec_decode_attn.beats_stock = lambda *asked: seen.append(asked)
    with pytest.raises(Stock):
        forward(impl, "flash", batch, engine_cache("flash", impl, batch))
    assert seen == [(3, 4)]


@pytest.mark.parametrize(
    "how",
    [
        {"sliding_window": 20},
        {"alibi_slopes": [0.5] * HEADS},
        {"logits_soft_cap": 30.0},
        {"sinks": torch.zeros(HEADS)},
        {"attn_type": AttentionType.ENCODER_DECODER},
    ],
    ids=lambda how: next(iter(how)),
)
@pytest.mark.parametrize("backend", ["flash", "triton"])
def test_layers_it_does_not_support(backend: str, how: dict[str, Any], offered: list[Any]) -> None:
    assert layer(backend, **how).spec_decode_attn is None and not offered


@pytest.mark.parametrize(
    ("backend", "dtype"), [("flash", "fp8"), ("triton", "auto"), ("triton", "fp8"), ("triton", "int4_per_token_head")]
)
def test_caches_it_does_not_read(backend: str, dtype: str, offered: list[Any]) -> None:
    assert layer(backend, kv_cache_dtype=dtype).spec_decode_attn is None and not offered


def test_chunked_lookback_is_not_supported(offered: list[Any]) -> None:
    assert layer("triton", chunk_lookback=1).spec_decode_attn is None and not offered


# What a process is before spec_decode_attention is asked.
KNOBS = {"VLLM_SPEC_DECODE_ATTN": "1"}
H200 = {"cuda": True, "capability": (9, 0), "sms": 132}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``device(knobs, drafts=..., ...)`` makes the process one on such a device; buffers are not allocated."""

    def become(knobs: dict[str, str] = KNOBS, *, drafts: int | None = 4, ubatching: bool = False, **card: Any) -> None:
        for name in ("VLLM_SPEC_DECODE_ATTN", "VLLM_SPEC_DECODE_ATTN_QMAX", "VLLM_SPEC_DECODE_ATTN_CUDA"):
            monkeypatch.delenv(name, raising=False)
        for name, value in knobs.items():
            monkeypatch.setenv(name, value)
        card = H200 | card
        platform = SimpleNamespace(
            is_cuda=lambda: card["cuda"],
            has_device_capability=lambda wanted: card["capability"][0] * 10 + card["capability"][1] >= wanted,
            num_compute_units=lambda: card["sms"],
        )
        speculative = None if drafts is None else SimpleNamespace(num_speculative_tokens=drafts)
        config = SimpleNamespace(
            speculative_config=speculative, parallel_config=SimpleNamespace(use_ubatching=ubatching)
        )
        monkeypatch.setattr(vllm.platforms, "_current_platform", platform)
        monkeypatch.setattr(vllm.config, "get_current_vllm_config_or_none", lambda: config)
        monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 0)
        monkeypatch.setattr(ops, "_instances", {})
        monkeypatch.setattr(ops, "SpecDecodeAttention", lambda *args, **more: SimpleNamespace(args=args, **more))

    return become


def test_one_object_a_geometry(device: Any) -> None:
    device()
    found = ops.spec_decode_attention(24, 4, 256)
    assert found.args == (24, 4, 256, 10, torch.device("cuda", 0))
    assert (found.num_sms, found.pdl, found.cuda) == (132, True, None)
    assert ops.spec_decode_attention(24, 4, 256) is found
    assert ops.spec_decode_attention(24, 2, 256) is not found


def test_before_sm90_launches_do_not_overlap(device: Any) -> None:
    device(capability=(8, 0))
    assert ops.spec_decode_attention(24, 4, 256).pdl is False


@pytest.mark.parametrize(
    ("knobs", "card"),
    [
        ({}, {}),
        ({"VLLM_SPEC_DECODE_ATTN": "0"}, {}),
        (KNOBS | {"VLLM_BATCH_INVARIANT": "1"}, {}),
        (KNOBS, {"drafts": None}),
        (KNOBS, {"ubatching": True}),
        (KNOBS, {"cuda": False}),
        (KNOBS, {"capability": (7, 5)}),
    ],
    ids=str,
)
def test_processes_that_go_without(knobs: dict[str, str], card: dict[str, Any], device: Any) -> None:
    device(knobs, **card)
    assert ops.spec_decode_attention(24, 4, 256) is None


@pytest.mark.parametrize("geometry", [(24, 4, 80), (24, 4, 512), (258, 2, 128)], ids=str)
def test_geometries_that_go_without(geometry: tuple[int, int, int], device: Any) -> None:
    device()
    assert ops.spec_decode_attention(*geometry) is None


@pytest.mark.parametrize(
    ("knob", "drafts", "limit"),
    [("0", 4, 10), ("0", 15, 16), ("20", 4, 20), ("20", None, 20), ("64", 4, 64), ("2", 4, 10)],
)
def test_most_query_tokens(knob: str, drafts: int | None, limit: int, device: Any) -> None:
    device(KNOBS | {"VLLM_SPEC_DECODE_ATTN_QMAX": knob}, drafts=drafts)
    assert ops.spec_decode_attention(24, 4, 256).args[3] == limit


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("VLLM_SPEC_DECODE_ATTN", "yes"),
        ("VLLM_SPEC_DECODE_ATTN", "2"),
        ("VLLM_SPEC_DECODE_ATTN_QMAX", "-1"),
        ("VLLM_SPEC_DECODE_ATTN_QMAX", "65"),
        ("VLLM_SPEC_DECODE_ATTN_QMAX", "many"),
        ("VLLM_SPEC_DECODE_ATTN_CUDA", "true"),
    ],
)
@pytest.mark.parametrize("on", ["0", "1"])
def test_a_value_that_makes_no_sense_is_an_error_at_start(knob: str, value: str, on: str, device: Any) -> None:
    device({"VLLM_SPEC_DECODE_ATTN": on} | {knob: value})
    with pytest.raises(ValueError, match=knob):
        ops.spec_decode_attention(24, 4, 256)


def test_without_knobs_everything_is_off(device: Any) -> None:
    device({})
    assert envs.VLLM_SPEC_DECODE_ATTN is False
    assert envs.VLLM_SPEC_DECODE_ATTN_QMAX == 0
    assert envs.VLLM_SPEC_DECODE_ATTN_CUDA == "0"
