"""An accepted-token count is an index into a request's row: whatever it is, nothing outside the row is read."""

from __future__ import annotations

import itertools
from typing import Any

import gdn_reference
import pytest
import torch
from gdn_cases import FAR, KERNELS, NEAR, POISON, SLOTS, outside, within

DELTA = ["fused_recurrent", "fused_recurrent_kda", "fused_sigmoid_gating"]
CONV = ["causal_conv1d, dim first", "causal_conv1d, token first"]


@pytest.fixture(scope="session")
def seen(driven: Any) -> Any:
    return driven("gdn_drive.py")


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit for bit, NaN included."""
    return torch.equal(one.view(torch.int32), other.view(torch.int32))


def written(found: dict[str, Any]) -> set[int]:
    """The blocks whose state changed."""
    before, after = (found[name].flatten(1).view(torch.int32) for name in ("before", "after"))
    return set((before != after).any(1).nonzero().flatten().tolist())


@pytest.mark.parametrize("kernel", KERNELS)
def test_upstream_reads_outside_the_row(seen: Any, kernel: str) -> None:
    outs = seen.pristine[kernel]["near"]["outs"]
    assert [row for row in outside(kernel, NEAR) if outs[row].isnan().any()] == outside(kernel, NEAR) != []


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("batch", ["near", "far"])
def test_a_count_outside_the_row_gives_zeros(seen: Any, kernel: str, batch: str) -> None:
    outs = seen.patched[kernel][batch]["outs"]
    rows = outside(kernel, NEAR if batch == "near" else FAR)
    assert rows
    for row in rows:
        assert torch.count_nonzero(outs[row]) == 0 and not outs[row].isnan().any()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("batch", ["near", "far"])
def test_and_leaves_every_state_as_it_was(seen: Any, kernel: str, batch: str) -> None:
    pairs = NEAR if batch == "near" else FAR
    found = seen.patched[kernel][batch]
    slots = 1 if kernel in CONV else SLOTS
    allowed = {
        block for row in within(kernel, pairs) for block in found["rows"][row, : min(slots, pairs[row][1])].tolist()
    }
    assert written(found) == allowed
    assert POISON not in allowed


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_count_within_the_row_gives_what_upstream_gives(seen: Any, kernel: str) -> None:
    pristine, patched = seen.pristine[kernel]["near"], seen.patched[kernel]["near"]
    rows = within(kernel, NEAR)
    assert len(rows) >= 5
    for row in rows:
        assert same(pristine["outs"][row], patched["outs"][row]) and not patched["outs"][row].isnan().any()
        for block in patched["rows"][row].tolist():
            assert same(pristine["after"][block], patched["after"][block])


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_count_above_this_step_s_tokens_is_honoured(seen: Any, kernel: str) -> None:
    """The count belongs to the step before: a shorter step may follow a longer one."""
    rows = [row for row in within(kernel, NEAR) if NEAR[row][0] > NEAR[row][1]]
    assert rows
    for row in rows:
        assert torch.count_nonzero(seen.patched[kernel]["near"]["outs"][row])


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_null_block_gives_zeros(seen: Any, kernel: str) -> None:
    pristine, patched = seen.pristine[kernel]["null"], seen.patched[kernel]["null"]
    if kernel in CONV:  # whose null rows upstream leaves alone, and so does the patch
        assert patched["outs"][1].isnan().all()
    else:
        assert torch.count_nonzero(patched["outs"][1]) == 0 and not patched["outs"][1].isnan().any()
    for row in (0, 2):
        assert same(pristine["outs"][row], patched["outs"][row])
    assert written(patched) == written(pristine)


@pytest.mark.parametrize("kernel", [*DELTA, "mamba_ssm"])
def test_without_drafts_a_kernel_is_upstream_s(seen: Any, kernel: str) -> None:
    pristine, patched = (side[f"{kernel}, no drafts"]["near"] for side in (seen.pristine, seen.patched))
    assert all(out.isfinite().all() and out.abs().max() > 0 for out in patched["outs"] if kernel != "mamba_ssm")
    assert all(same(*outs) for outs in zip(pristine["outs"], patched["outs"], strict=True))
    assert same(pristine["after"], patched["after"])


def spans(pairs: list[tuple[int, int]]) -> list[slice]:
    ends = [0]
    for _, length in pairs:
        ends.append(ends[-1] + length)
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


@pytest.mark.parametrize("kernel", [*DELTA, "mamba_ssm"])
def test_outputs_and_states_against_64_bit_floats(seen: Any, kernel: str) -> None:
    found = seen.patched[kernel]["near"]
    reference = gdn_reference.selective_scan if kernel == "mamba_ssm" else gdn_reference.delta_rule
    for row in within(kernel, NEAR):
        start = found["before"][found["rows"][row, max(NEAR[row][0] - 1, 0)]]
        outs, states = reference(found["inputs"], spans(NEAR)[row], start)
        torch.testing.assert_close(found["outs"][row].double(), outs, rtol=0, atol=5e-6)
        for token, state in enumerate(states):
            torch.testing.assert_close(found["after"][found["rows"][row, token]].double(), state, rtol=0, atol=5e-6)


@pytest.mark.parametrize("kernel", CONV)
def test_the_convolution_against_64_bit_floats(seen: Any, kernel: str) -> None:
    found = seen.patched[kernel]["near"]
    for row in within(kernel, NEAR):
        block = int(found["rows"][row, 0])
        outs = gdn_reference.convolution(found, spans(NEAR)[row], block, NEAR[row][0])
        torch.testing.assert_close(found["outs"][row].double(), outs, rtol=0, atol=5e-6)


@pytest.fixture(scope="session")
def built(driven: Any) -> Any:
    return driven("gdn_compile.py")


@pytest.mark.parametrize("capability", [86, 90])
def test_every_kernel_compiles(built: Any, capability: int) -> None:
    kernels = built.patched[capability]
    assert kernels.keys() == built.pristine[capability].keys()
    assert all(kernel["cubin"] for kernel in kernels.values())
    convolution = kernels["drafts: _causal_conv1d_update_kernel"]
    assert convolution["dependents"] == (capability >= 90)


@pytest.mark.parametrize("capability", [86, 90])
def test_without_drafts_the_program_is_upstream_s(built: Any, capability: int) -> None:
    names = [name for name in built.patched[capability] if name.startswith("no drafts")]
    assert len(names) == 2
    for name in names:
        assert built.patched[capability][name]["ptx"] == built.pristine[capability][name]["ptx"]


@pytest.mark.parametrize("capability", [86, 90])
def test_with_drafts_it_is_another(built: Any, capability: int) -> None:
    names = [name for name in built.patched[capability] if name.startswith("drafts")]
    assert names and not [
        name for name in names if built.patched[capability][name]["ptx"] == built.pristine[capability][name]["ptx"]
    ]
