"""The interpreter these tests run kernels in computes bfloat16 as the hardware does; unrepaired, it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from interpreter import rounded, widened


@triton.jit
def _operate(a_ptr, b_ptr, dot_ptr, sum_ptr, int_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + at)
    b = tl.load(b_ptr + at)
    tl.store(dot_ptr + at, tl.dot(a, b))
    tl.store(sum_ptr + at, a * b + a)
    tl.store(int_ptr + at, tl.load(int_ptr + at).to(tl.int8).to(tl.bfloat16))


def operate() -> dict[str, float]:
    """The relative errors against float64."""
    n = 32
    torch.manual_seed(3)
    a, b = torch.randn(2, n, n).to(torch.bfloat16)
    dot = torch.full((n, n), float("nan"))
    total = torch.full((n, n), float("nan"), dtype=torch.bfloat16)
    integers = torch.randint(-128, 128, (n, n)).to(torch.bfloat16)
    converted = integers.clone()
    _operate[(1,)](a, b, dot, total, converted, N=n)
    expected = a.double() @ b.double()
    expected_sum = (a.double() * b.double()).bfloat16().double() + a.double()
    return {
        "dot": float((dot - expected).norm() / expected.norm()),
        "sum": float((total.double() - expected_sum).norm() / expected_sum.norm()),
        "int": float((converted - integers).abs().max()),
    }


def test_bfloat16_is_computed_right() -> None:
    errors = operate()
    assert errors["dot"] < 1e-6
    assert errors["sum"] < 4e-3
    assert errors["int"] == 0


def test_unrepaired_the_same_kernel_gives_garbage() -> None:
    """What the repair is for; when this fails, Triton mends itself and the repair can go."""
    here = Path(__file__).parent
    code = (
        "import sys, types; sys.modules['interpreter'] = types.SimpleNamespace(rounded=None, widened=None)\n"
        "import test_interpreter; print(test_interpreter.operate()['dot'])"
    )
    env = {**os.environ, "PYTHONPATH": f"{here}:{os.environ.get('PYTHONPATH', '')}", "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert not float(done.stdout) < 1


@pytest.mark.parametrize("bits", [0x0000, 0x8000, 0x3F80, 0x7F80, 0xFF80, 0x0001, 0x7F7F])
def test_every_bfloat16_rounds_to_itself(bits: int) -> None:
    assert rounded(widened(np.array([bits], np.uint16)))[0] == bits


def test_rounding_is_torchs() -> None:
    torch.manual_seed(4)
    values = torch.cat(
        [torch.randn(4096) * 10.0 ** torch.randint(-30, 30, (4096,)), torch.tensor([1 + 2**-8, 1 + 3 * 2**-8])]
    )
    expected = values.bfloat16().view(torch.int16).numpy().view(np.uint16)
    assert (rounded(values.numpy()) == expected).all()
    assert np.isnan(widened(rounded(np.array([np.nan], np.float32)))).all()
