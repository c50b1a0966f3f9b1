"""The tiling shrinks until the launch fits the device, and is remembered."""

from __future__ import annotations

import pytest
import torch
from triton.runtime.errors import OutOfResources
from vllm.v1.attention.ops import spec_decode_attn as ops

STAGES = 3


class Device:
    """Takes launches with so many positions in flight, and keeps the tiles tried, with their stages where not all."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.tried: list[int | tuple[int, int]] = []

    def launch(self, tiling: ops.Tiling) -> None:
        self.tried.append(tiling.tile if tiling.stages == STAGES else (tiling.tile, tiling.stages))
        needed = tiling.tile * tiling.stages
        if needed > self.limit * STAGES:
            raise OutOfResources(needed, self.limit * STAGES, "shared memory")


@pytest.fixture
def attention() -> ops.SpecDecodeAttention:
    return ops.SpecDecodeAttention(6, 2, 64, 4, torch.device("cpu"), 4, pdl=False)


def tiling(rows: int = 32, tile: int = 128) -> ops.Tiling:
    return ops.Tiling(rows, tile, num_warps=4, stages=STAGES, waves=1)


def test_it_halves_until_it_fits(attention: ops.SpecDecodeAttention) -> None:
    device = Device(limit=32)
    attention._launch_fitting(device.launch, tiling(), torch.bfloat16)
    assert device.tried == [128, 64, 32]


def test_what_fits_is_remembered(attention: ops.SpecDecodeAttention) -> None:
    device = Device(limit=32)
    for _ in range(3):
        attention._launch_fitting(device.launch, tiling(), torch.bfloat16)
    assert device.tried == [128, 64, 32, 32, 32]


def test_for_the_rows_and_the_dtype_alone(attention: ops.SpecDecodeAttention) -> None:
    device = Device(limit=64)
    attention._launch_fitting(device.launch, tiling(), torch.bfloat16)
    attention._launch_fitting(device.launch, tiling(), torch.int8)
    attention._launch_fitting(device.launch, tiling(rows=64), torch.bfloat16)
    attention._launch_fitting(device.launch, tiling(), torch.int8)
    assert device.tried == [128, 64, 128, 64, 128, 64, 64]


def test_what_always_fitted_is_launched_once(attention: ops.SpecDecodeAttention) -> None:
    device = Device(limit=4096)
    attention._launch_fitting(device.launch, tiling(), torch.bfloat16)
    assert device.tried == [128]


def test_at_the_least_tile_fewer_loads_are_in_flight(attention: ops.SpecDecodeAttention) -> None:
    device = Device(limit=6)
    for _ in range(2):
        attention._launch_fitting(device.launch, tiling(), torch.bfloat16)
    assert device.tried == [128, 64, 32, 16, (16, 2), (16, 1), (16, 1)]


def test_at_the_floor_the_error_is_the_devices(attention: ops.SpecDecodeAttention) -> None:
    device = Device(limit=5)
    with pytest.raises(OutOfResources):
        attention._launch_fitting(device.launch, tiling(), torch.bfloat16)
    assert device.tried == [128, 64, 32, 16, (16, 2), (16, 1)]
    assert attention.fitting == {}


def test_another_error_is_not_swallowed(attention: ops.SpecDecodeAttention) -> None:
    def launch(tiling: ops.Tiling) -> None:
        raise RuntimeError(f"tile {tiling.tile}")

    with pytest.raises(RuntimeError, match="tile 128"):
        attention._launch_fitting(launch, tiling(), torch.bfloat16)


def test_the_attention_launches_this_way(attention: ops.SpecDecodeAttention, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[tuple[int, torch.dtype]] = []

    def record(launch: object, tiling: ops.Tiling, dtype: torch.dtype) -> None:
        launched.append((tiling.tile, dtype))

    monkeypatch.setattr(attention, "_launch_fitting", record)
    query = torch.zeros(2, 6, 64)
    cache = torch.zeros(3, 16, 2, 64)
    lengths = torch.zeros(1, dtype=torch.int32)
    attention(
        query, cache, cache, torch.zeros(1, 1).int(), lengths, torch.zeros(2, dtype=torch.int32), 2, 1.0, query.clone()
    )
    assert launched == [(64, torch.float32)]
