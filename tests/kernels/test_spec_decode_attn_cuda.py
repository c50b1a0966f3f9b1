"""The CUDA verify attention without a GPU: when it is chosen, what it is given, how its source cuts a batch, that it builds.

Its numbers are tested on a GPU: tests/gpu.
"""

from __future__ import annotations

import importlib
import itertools
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from batches import Batch, make_batch, quantised, relative_error
from vllm import envs
from vllm.v1.attention.ops import spec_decode_attn as ops
from vllm.v1.attention.ops.spec_decode_attn_cuda import CudaVerifyAttention, library, plan

BFLOAT16 = 1e-2
GEOMETRY = {"heads": 24, "kv_heads": 4, "head_size": 256, "dtype": torch.bfloat16}


def row(
    requests: set[int], most: int, min_units: int = 4, least: int = 1, cache: torch.dtype = torch.bfloat16
) -> plan.Measured:
    return plan.Measured((9, 0), 24, 4, 256, frozenset(requests), (least, most), min_units, cache)


def ask(
    num_reqs: int, q_len: int, *, capability: tuple[int, int] = (9, 0), heads: int = 24, **how: torch.dtype
) -> plan.Plan | None:
    return plan.plan_for(capability, heads, 4, 256, num_reqs, q_len, 132, **how)


class TestTable:
    def test_the_first_row_that_has_the_batch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plan, "MEASURED", (row({1, 2}, 5, 8, least=2), row({1}, 16, 2)))
        assert ask(1, 5) == plan.Plan(slots=33, min_units=8)
        assert ask(1, 6) == plan.Plan(slots=33, min_units=2)
        assert ask(1, 1) == plan.Plan(slots=33, min_units=2)
        assert ask(2, 6) is None
        assert ask(2, 1) is None
        assert ask(3, 2) is None

    def test_other_devices_and_geometries_have_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plan, "MEASURED", (row({1}, 16),))
        assert ask(1, 4) is not None
        assert ask(1, 4, capability=(10, 0)) is None
        assert ask(1, 4, heads=20) is None

    def test_nothing_past_the_rows_and_requests_of_the_kernel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plan, "MEASURED", (row(set(range(1, 100)), 64),))
        assert ask(32, 21) is not None
        assert ask(33, 21) is None
        assert ask(32, 22) is None

    def test_an_int8_cache_has_rows_and_limits_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plan, "MEASURED", (row({1}, 64, 2), row({1, 2}, 64, 3, cache=torch.int8)))
        assert ask(1, 16) == plan.Plan(33, 2)
        assert ask(1, 16, cache=torch.int8) == plan.Plan(33, 3)
        assert ask(2, 16) is None
        assert ask(2, 16, cache=torch.int8) is not None
        assert ask(1, 17) is not None
        assert ask(1, 17, cache=torch.int8) is None
        assert ask(1, 16, cache=torch.float8_e4m3fn) is None

    def test_the_table_that_ships_keeps_to_them(self) -> None:
        assert plan.MEASURED
        for entry in plan.MEASURED:
            assert entry.head_size == 256
            assert entry.num_heads % entry.num_kv_heads == 0
            most = plan.MAX_ROWS_INT8 if entry.cache == torch.int8 else plan.MAX_ROWS
            assert entry.query_lens[1] * (entry.num_heads // entry.num_kv_heads) <= most
            assert 2 <= entry.query_lens[0] <= entry.query_lens[1]
            assert entry.requests
            assert max(entry.requests) <= plan.MAX_REQUESTS
            assert entry.min_units >= 1

    def test_the_kernel_has_the_same_limits(self) -> None:
        sources = "".join(path.read_text() for path in library.SOURCES.glob("*.cu*"))
        assert f"MAX_REQUESTS = {plan.MAX_REQUESTS};" in sources
        assert f"check(wanted <= {plan.MAX_ROWS}, " in sources
        assert f"check(wanted <= {plan.MAX_ROWS_INT8}, " in sources


def behind(keys: torch.Tensor, size: int, offset: int) -> torch.Tensor:
    """What lies so many bytes behind the keys of each token and head: ``size`` elements."""
    return keys.as_strided((*keys.shape[:3], size), keys.stride(), keys.storage_offset() + offset)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[plan.Plan]]:
    """The operators, with the schemas their source gives them, answered by attention in float64 on what they were given."""
    source = (library.SOURCES / "op.cu").read_text()
    seen: list[plan.Plan] = []

    def attend(out, part, limits, query, keys, values, table, kv_lens, q_starts, longest, slots, min_units, scale):  # type: ignore[no-untyped-def]
        assert part.shape == (slots, 4, plan.MAX_ROWS, 128)
        assert limits.shape == (slots, 4, plan.MAX_ROWS, 4)
        for buffer in (part, limits):
            assert buffer.dtype == torch.int32
            assert bool((buffer == -1).all())
        assert longest >= int((q_starts[1:] - q_starts[:-1]).max())
        assert scale == 256**-0.5
        seen.append(plan.Plan(slots, min_units))
        batch = Batch(torch.empty(0), table, query, kv_lens, q_starts)
        out.copy_(batch.expected(keys, values))

    def attend_int8(out, part, limits, query, keys, *rest):  # type: ignore[no-untyped-def]
        codes = [behind(keys, 256, offset).double() for offset in (0, 260)]
        scales = [behind(keys, 4, offset).contiguous().view(torch.float32).double() for offset in (256, 516)]
        attend(out, part, limits, query, *(c * s for c, s in zip(codes, scales, strict=True)), *rest)

    made = torch.library.Library("verify_attention", "DEF")
    for definition in re.findall(r"m\.def\((.*?)\);", source, re.DOTALL):
        made.define("".join(re.findall(r'"(.*?)"', definition)))
    made.impl("attend", attend, "CPU")
    made.impl("attend_int8", attend_int8, "CPU")
    monkeypatch.setattr(plan, "MEASURED", (row({1, 2}, 8, 3), row({1}, 8, 5, cache=torch.int8)))
    yield seen
    made._destroy()


def attention(cuda: CudaVerifyAttention | None) -> ops.SpecDecodeAttention:
    return ops.SpecDecodeAttention(24, 4, 256, 16, torch.device("cpu"), 8, pdl=False, cuda=cuda)


def cuda_attention() -> CudaVerifyAttention:
    return CudaVerifyAttention(24, 4, 256, torch.device("cpu"), 132, (9, 0))


Caches = tuple[torch.Tensor, ...]  # keys, values, and for int8 their scales


def run(made: ops.SpecDecodeAttention, batch: Batch, caches: Caches | None = None) -> torch.Tensor:
    out = batch.poisoned()
    caches = caches or (batch.keys, batch.values)
    tensors = (batch.query, *caches[:2], batch.table, batch.kv_lens, batch.q_starts)
    made(*tensors, batch.longest_query, 256**-0.5, out, *caches[2:])
    return out


def int8_batch(kv_lens: list[int], q_lens: list[int], **how: int) -> tuple[Batch, Caches]:
    batch = make_batch(kv_lens, q_lens, **{**GEOMETRY, **how})
    return batch, quantised(batch)


class TestDispatch:
    def test_a_batch_of_the_table_is_launched(self, launches: list[plan.Plan]) -> None:
        made = attention(cuda_attention())
        batch = make_batch([90, 40], [3, 2], **GEOMETRY)
        assert made.beats_stock(2, 3)
        assert relative_error(run(made, batch), batch.expected()) < BFLOAT16
        assert launches == [plan.Plan(33, 3)]

    def test_others_go_to_triton(self, launches: list[plan.Plan]) -> None:
        made = attention(cuda_attention())
        batch = make_batch([40, 20, 20], [2, 2, 2], **GEOMETRY)
        assert not made.beats_stock(3, 2)
        assert relative_error(run(made, batch), batch.expected()) < BFLOAT16
        assert launches == []

    def test_so_do_tensors_it_cannot_read(self, launches: list[plan.Plan]) -> None:
        made = attention(cuda_attention())
        for change in ({"dtype": torch.float16}, {"block_size": 24}):
            batch = make_batch([40], [2], **{**GEOMETRY, **change})
            assert relative_error(run(made, batch), batch.expected()) < BFLOAT16
        assert launches == []

    def test_without_it_nothing_is_asked_of_the_table(self, launches: list[plan.Plan]) -> None:
        made = attention(None)
        batch = make_batch([40], [2], **GEOMETRY)
        assert made.beats_stock(1, 2)
        assert made.beats_stock(99, 16)
        assert relative_error(run(made, batch), batch.expected()) < BFLOAT16
        assert launches == []

    def test_buffers_stay_where_they_are(self, launches: list[plan.Plan]) -> None:
        cuda = cuda_attention()
        made = attention(cuda)
        addresses = [x.data_ptr() for x in (cuda.part, cuda.limits)]
        for seed in range(3):
            run(made, make_batch([50], [4], seed=seed, **GEOMETRY))
        assert addresses == [x.data_ptr() for x in (cuda.part, cuda.limits)]
        assert len(launches) == 3

    def test_misaligned_rows_do_not_fit(self) -> None:
        batch = make_batch([40], [2], **GEOMETRY)
        assert CudaVerifyAttention.fits(batch.query, batch.keys, batch.values, batch.query)
        wide = torch.zeros(batch.query.shape[0], 24, 260, dtype=torch.bfloat16)
        assert not CudaVerifyAttention.fits(wide[..., 4:], batch.keys, batch.values, batch.query)
        assert not CudaVerifyAttention.fits(batch.query.float(), batch.keys, batch.values, batch.query)


class TestInt8:
    def test_a_batch_of_its_table_is_launched(self, launches: list[plan.Plan]) -> None:
        batch, caches = int8_batch([90], [3])
        assert relative_error(run(attention(cuda_attention()), batch, caches), batch.expected()) < BFLOAT16
        assert launches == [plan.Plan(33, 5)]

    def test_others_go_to_triton(self, launches: list[plan.Plan]) -> None:
        batch, caches = int8_batch([40, 20], [2, 2])  # which a bfloat16 cache has a row for
        assert relative_error(run(attention(cuda_attention()), batch, caches), batch.expected()) < BFLOAT16
        assert launches == []

    def test_so_does_a_layout_it_cannot_read(self, launches: list[plan.Plan]) -> None:
        batch, caches = int8_batch([40], [2])
        apart = (*caches[:2], caches[2].clone(), caches[3])  # the scales of the keys are elsewhere
        assert relative_error(run(attention(cuda_attention()), batch, apart), batch.expected()) < BFLOAT16
        assert launches == []

    def test_what_fits(self) -> None:
        batch, (keys, values, k_scales, v_scales) = int8_batch([40], [2])

        def fits(*caches: torch.Tensor | None) -> bool:
            keys, values, *scales = caches
            assert keys is not None
            assert values is not None
            return CudaVerifyAttention.fits(batch.query, keys, values, batch.query, *scales)

        assert fits(keys, values, k_scales, v_scales)
        assert not fits(keys, values)
        assert not fits(keys, values, k_scales, None)
        assert not fits(keys, keys, k_scales, v_scales)
        assert not fits(keys, values, v_scales, k_scales)
        assert not fits(keys, values, k_scales.double(), v_scales)
        assert not fits(keys[:, :8], values[:, :8], k_scales[:, :8], v_scales[:, :8])  # half a block
        # From the second head on nothing starts at a multiple of 16 bytes, and three heads are not an even number.
        assert not fits(*(cache[:, :, 1:3] for cache in (keys, values, k_scales, v_scales)))
        assert not fits(*(cache[:, :, :3] for cache in (keys, values, k_scales, v_scales)))

    def test_heads_first_does_not(self) -> None:
        batch, caches = int8_batch([40], [2])
        raw = behind(caches[0], 520, 0).transpose(1, 2).contiguous().transpose(1, 2)
        keys, values = raw[..., :256], raw[..., 260:516]
        k_scales, v_scales = (raw[..., at : at + 4].view(torch.float32)[..., 0] for at in (256, 516))
        assert torch.equal(values, caches[1])
        assert torch.equal(v_scales.nan_to_num(), caches[3].nan_to_num())
        assert not CudaVerifyAttention.fits(batch.query, keys, values, batch.query, k_scales, v_scales)


class Platform:
    """A platform of one capability, for cuda_verify_attention."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.capability = capability

    def get_device_capability(self) -> object:
        from vllm.platforms.interface import DeviceCapability

        return DeviceCapability(*self.capability)

    def num_compute_units(self) -> int:
        return 132


class TestLibrary:
    @pytest.fixture(autouse=True)
    def places(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(library, "places", lambda: (tmp_path / "package", tmp_path / "cache"))
        monkeypatch.setattr("vllm.platforms.current_platform", Platform((9, 0)))
        monkeypatch.setattr(plan, "MEASURED", (row({1}, 8),))
        monkeypatch.setattr("vllm.v1.attention.ops.spec_decode_attn_cuda.MEASURED", plan.MEASURED)

    def found(self, knob: str) -> CudaVerifyAttention | None:
        return ops.cuda_verify_attention(24, 4, 256, torch.device("cpu"), knob)

    def test_without_the_knob_nothing_is_looked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(library, "load", lambda: pytest.fail("looked for"))
        assert self.found("0") is None

    def test_a_missing_library_leaves_triton(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VLLM_SPEC_DECODE_ATTN_CUDA", "1")
        said: list[str] = []
        monkeypatch.setattr(library.logger, "warning", lambda text, *args: said.append(text % args))
        assert self.found("1") is None
        assert "spec_decode_attn_cuda.build" in said[0]

    def test_a_broken_one_is_an_error(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("VLLM_SPEC_DECODE_ATTN_CUDA", "1")
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / library.NAME).write_bytes(b"no library")
        with pytest.raises(OSError, match="Could not load this library"):
            self.found("1")

    def test_one_is_built_when_asked_for(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("VLLM_SPEC_DECODE_ATTN_CUDA", "build")
        done: list[object] = []
        monkeypatch.setattr(library, "build", done.append)
        monkeypatch.setattr(torch.ops, "load_library", done.append)
        assert self.found("build") is not None
        assert done == [tmp_path / "cache", str(tmp_path / "cache" / library.NAME)]

    def test_an_unmeasured_device_needs_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(library, "load", lambda: pytest.fail("looked for"))
        monkeypatch.setattr("vllm.platforms.current_platform", Platform((8, 6)))
        assert self.found("1") is None

    def test_the_compiler_that_is_not_there_is_named(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))
        with pytest.raises(RuntimeError, match=r"bin/nvcc cannot be run .*: set CUDA_HOME"):
            library.build(tmp_path / "made")
        assert not any((tmp_path / "made").iterdir())


class TestKnob:
    @pytest.mark.parametrize("value", ["2", "yes", "jit"])
    def test_a_value_that_is_none_is_refused(self, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
        monkeypatch.setenv("VLLM_SPEC_DECODE_ATTN_CUDA", value)
        with pytest.raises(ValueError, match="VLLM_SPEC_DECODE_ATTN_CUDA"):
            _ = envs.VLLM_SPEC_DECODE_ATTN_CUDA

    def test_the_knob_is_off_by_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("VLLM_SPEC_DECODE_ATTN_CUDA", raising=False)
        assert envs.VLLM_SPEC_DECODE_ATTN_CUDA == "0"


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source that cuts a batch, on a warp of CPU threads."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    here, program = Path(__file__).parent, tmp_path_factory.mktemp("segments") / "segments"
    flags = ["-std=c++20", "-O1", "-pthread", f"-I{library.SOURCES}"]
    subprocess.run([compiler, *flags, str(here / "segments.cpp"), "-o", str(program)], check=True)
    return program


def test_every_unit_of_a_batch_is_in_one_segment(cut: Path) -> None:
    chance = random.Random(7)
    batches = []
    for _ in range(120):
        num = chance.choice([1, 1, 2, 3, 7, 8, 31, 32])
        slots = chance.choice([num, num + 1, 33, 66]) if num < 33 else num
        slots = max(slots, num)
        top = chance.choice([1, 3, 100, 8192])
        units = [chance.choice([0, chance.randint(1, top), chance.randint(1, top)]) for _ in range(num)]
        batches.append((slots, chance.choice([1, 4, 16]), units + [0] * (32 - num)))
    lines = "\n".join(f"{slots} {least} {' '.join(map(str, units))}" for slots, least, units in batches)
    answer = subprocess.run([cut], input=lines, capture_output=True, text=True, check=True).stdout
    parts = answer.split(".\n")
    assert parts.pop() == ""
    assert len(parts) == len(batches)
    for (slots, least, units), part in zip(batches, parts, strict=True):
        segments = [tuple(map(int, line.split())) for line in part.splitlines()]
        assert [s[0] for s in segments] == list(range(len(segments)))  # the first slots, each once
        partials, counts = 0, []
        for request, length in enumerate(units):
            mine = [s for s in segments if s[1] == request]
            assert bool(mine) == bool(length)
            if not mine:
                continue
            count = mine[0][3]
            counts.append(count)
            assert [s[2] for s in mine] == list(range(count))
            assert {s[3:6] for s in mine} == {(count, partials, length)}
            edges = [mine[0][6], *[s[7] for s in mine]]
            assert edges[0] == 0
            assert edges[-1] == length
            assert all(s[6] == begin for s, begin in zip(mine, edges, strict=False))
            pieces = [b - a for a, b in itertools.pairwise(edges)]
            assert max(pieces) - min(pieces) <= 1
            assert count == 1 or max(pieces) > least // 2
            partials += count if count > 1 else 0
        assert partials <= slots


def test_a_batch_of_equal_requests_fills_the_device(cut: Path) -> None:
    lines = "\n".join(f"33 1 {' '.join(['3300'] * n + ['0'] * (32 - n))}" for n in range(1, 9))
    answer = subprocess.run([cut], input=lines, capture_output=True, text=True, check=True).stdout
    used = [len(part.splitlines()) for part in answer.split(".\n")[:-1]]
    assert used == [33 // n * n for n in range(1, 9)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The library, and what the compiler said of it."""
    if shutil.which(library.nvcc()) is None:
        pytest.skip("there is no nvcc")
    directory = tmp_path_factory.mktemp("built")
    said = library.build(directory)
    assert [path.name for path in directory.iterdir()] == [library.NAME]
    return directory / library.NAME, said


class TestVariants:
    """The benchmark that leaves parts of the kernel out finds them in its source."""

    @pytest.fixture
    def variants(self, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks" / "gpu"))
        return importlib.import_module("verify_variants")

    def test_every_edit_has_its_place(self, variants: ModuleType) -> None:
        source = (library.SOURCES / variants.KERNEL).read_text()
        made = [variants.variant(source, edits) for edits in variants.VARIANTS.values()]
        assert len(set(made)) == len(made) >= 7
        assert made[0] == source.replace("  const int tiles = ", "  int tiles = ") != source

    def test_one_whose_place_is_gone_is_refused(self, variants: ModuleType) -> None:
        with pytest.raises(ValueError, match="does not have once: gone"):
            variants.variant("other\n", [("  gone\n", "x")])


class TestBuild:
    def test_nothing_spills_and_no_multiplication_is_serialised(self, built: tuple[Path, str]) -> None:
        spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", built[1])
        assert len(spills) == 2 + 5  # 64 and 128 rows; 16, 32, 48, 64 and 96 over int8
        assert {int(n) for pair in spills for n in pair} == {0}
        assert "serialized" not in built[1]

    def test_only_the_stable_abi_is_asked_of_libtorch(self, built: tuple[Path, str]) -> None:
        listed = subprocess.run(
            ["nm", "-D", "--undefined-only", str(built[0])], capture_output=True, text=True, check=True
        ).stdout
        names = [line.split()[-1] for line in listed.splitlines()]
        assert "aoti_torch_get_current_cuda_stream" in names
        allowed = re.compile(
            r"(aoti_torch_|torch_|__cxa_|_Unwind_|_ITM_|__gmon|__gxx|_ZTVN10__cxxabiv|_Znw|_Zdl|_ZNSt|_ZSt|_ZTISt|_ZNKSt)"
        )
        strange = [n for n in names if not allowed.match(n) and "@GLIBC" not in n]
        assert strange == []
