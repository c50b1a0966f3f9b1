"""The CUDA verify attention on a GPU."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import checks
import pytest


@pytest.mark.parametrize(
    ("kv_lens", "q_lens", "how"), [case[1:] for case in checks.CASES], ids=[case[0] for case in checks.CASES]
)
def test_batches(ops: ModuleType, kv_lens: list[int], q_lens: list[int], how: dict[str, Any]) -> None:
    assert 1e-5 < checks.check(ops, kv_lens, q_lens, **how) < checks.BOUND


INT8 = [case for case in checks.CASES if checks.fits_int8(*case[2:])]


@pytest.mark.parametrize(("kv_lens", "q_lens", "how"), [case[1:] for case in INT8], ids=[case[0] for case in INT8])
def test_batches_over_int8(ops: ModuleType, kv_lens: list[int], q_lens: list[int], how: dict[str, Any]) -> None:
    assert 1e-5 < checks.check(ops, kv_lens, q_lens, int8=True, **how) < checks.BOUND


def test_scales_far_apart(ops: ModuleType) -> None:
    checks.check_scales(ops)


def test_a_captured_graph(ops: ModuleType) -> None:
    checks.check_graph(ops)


def test_large_and_small_values(ops: ModuleType) -> None:
    checks.check_large_values(ops)
