"""The CUDA verify attention on a GPU."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.mark.parametrize("int8", [False, True], ids=["bfloat16", "int8"])
@pytest.mark.parametrize(
    ("kv_lens", "q_lens", "how"), [case[1:] for case in checks.CASES], ids=[case[0] for case in checks.CASES]
)
def test_the_triton_kernels(
    ops: ModuleType, kv_lens: list[int], q_lens: list[int], how: dict[str, Any], int8: bool
) -> None:
    assert 1e-5 < checks.check_triton(ops, kv_lens, q_lens, int8=int8, **how) < checks.BOUND


def test_scales_far_apart(ops: ModuleType) -> None:
    checks.check_scales(ops)


@pytest.mark.parametrize("int8", [False, True], ids=["bfloat16", "int8"])
@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_what_a_batch_does_not_show(ops: ModuleType, check: Callable[[ModuleType, bool], None], int8: bool) -> None:
    check(ops, int8)
