"""The ladder without a card: the model's sizes, the time a run has, the document it leaves, and the page made of two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any

import geometry
import ladder
import plan
import pytest
import results
import steps
from results import FAILED, MEASURED, NOT_RUN, Budget


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class TestGeometry:
    def test_the_sizes_are_those_of_the_27b(self) -> None:
        found = geometry.config(geometry.FULL)
        assert (found["num_attention_heads"], found["num_key_value_heads"], found["head_dim"]) == (24, 4, 256)
        assert (found["linear_num_key_heads"], found["linear_num_value_heads"]) == (16, 48)
        assert (found["linear_key_head_dim"], found["linear_value_head_dim"]) == (128, 128)
        assert (found["hidden_size"], found["intermediate_size"], found["vocab_size"]) == (5120, 17408, 248320)
        kinds = found["layer_types"]
        assert (kinds.count("full_attention"), kinds.count("linear_attention")) == (16, 48)
        assert kinds[:4] == ["linear_attention"] * 3 + ["full_attention"]

    def test_27_billion_weights(self) -> None:
        counted = geometry.parameters(geometry.FULL)
        assert 26.5e9 < counted["target"] < 27.5e9
        # A token's row of the embedding is all that is read of it.
        assert counted["target"] - counted["read"] == 248320 * 5120
        assert 0.3e9 < counted["mtp"] < 0.6e9

    def test_the_weights_of_a_layer_are_counted_as_torch_would(self) -> None:
        tiny = geometry.Geometry(4, 4, 2, 3, 5, 2, 1, 4, 1, 2, 8, 64)
        full = 2 * (2 * 8 + 2 * 4) + 8 * 2 + 2 * 4
        linear = 2 * (2 * 8 + 2 * 16 + 2 * 2) + 16 * 2 + (2 * 8 + 16) * 4 + 2 * 2 + 8
        rest = 3 * 2 * 3 + 2 * 2
        assert geometry.parameters(tiny)["target"] == full + 3 * linear + 4 * rest + 2 + 2 * 5 * 2

    def test_mtp_is_there_and_the_small_one_has_every_kind_of_layer(self) -> None:
        assert geometry.config(geometry.FULL)["mtp_num_hidden_layers"] == 1
        assert set(geometry.config(geometry.SMALL)["layer_types"]) == {"full_attention", "linear_attention"}


class TestPlan:
    def test_both_trees_are_booted_alike_but_for_the_knobs(self) -> None:
        old, new = (plan.boots(name, list(plan.PARTS), Path("m"), small=False) for name in ("pristine", "patched"))
        for one, two in zip(old, new, strict=True):
            assert one["engine"] == two["engine"] and one["knobs"] == {}
        assert [boot["knobs"] for boot in new] == [plan.KNOBS, plan.KNOBS, {}]

    def test_the_pristine_tree_is_not_booted_for_the_part_without_knobs(self) -> None:
        (boot,) = plan.boots("pristine", ["long"], Path("m"), small=False)
        assert boot["points"] == [] and boot["status"] == NOT_RUN and "knobs" in boot["message"]

    def test_a_graph_for_every_verify_batch_that_is_measured(self) -> None:
        arguments = plan.engine("spec", Path("m"), small=False)
        sizes = arguments["compilation_config"]["cudagraph_capture_sizes"]
        batches = {point.batch for point in plan.SPEC}
        assert {batch * (plan.DRAFTS + 1) for batch in batches} <= set(sizes)
        assert all(size % (plan.DRAFTS + 1) == 0 for size in sizes)
        for point in plan.SPEC:
            # Every draft may be accepted, and nobody may reach the end.
            assert point.context + 2 * point.steps * (plan.DRAFTS + 1) < arguments["max_model_len"]

    def test_a_graph_for_every_batch_of_the_ladder(self) -> None:
        sizes = plan.engine("ladder", Path("m"), small=False)["compilation_config"]["cudagraph_capture_sizes"]
        assert {point.batch for point in plan.LADDER} <= set(sizes) and max(sizes) == 64

    @pytest.mark.parametrize(("part", "points"), [("ladder", plan.LADDER), ("spec", plan.SPEC)])
    def test_a_boot_and_its_points_are_expected_to_fit_a_command(
        self, part: str, points: tuple[plan.Point, ...]
    ) -> None:
        assert 260 + sum(point.seconds for point in points) < 560, part


class TestBudget:
    def test_what_cannot_finish_is_not_begun(self) -> None:
        clock = Clock()
        budget = Budget(1100.0, clock)
        assert budget.refusal(95) is None
        assert budget.refusal(96) == "it takes about 101 s and 100 were left"
        clock.now = 1200.0
        assert budget.refusal(1) == "it takes about 6 s and 0 were left"

    def test_an_estimate_is_corrected_by_the_one_before_and_never_down(self) -> None:
        budget = Budget(1100.0, Clock())
        budget.learn(10, 30)
        assert budget.refusal(31) is None
        assert budget.refusal(32) == "it takes about 101 s and 100 were left"
        budget.learn(10, 1)
        assert budget.refusal(95) is None
        assert budget.refusal(96) is not None


def header(name: str = "patched") -> dict[str, Any]:
    return {"name": name, "date": "2026-12-03", "small": False, "card": "NVIDIA H200", "driver": "580"}


class TestDocument:
    def test_a_failed_write_leaves_the_old_one_and_nothing_beside_it(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        results.write(path, {"a": 1})
        with pytest.raises(TypeError):
            results.write(path, {"a": 1, "b": object()})
        assert results.read(path) == {"a": 1}
        assert list(tmp_path.iterdir()) == [path]

    def test_who_is_killed_while_writing_leaves_a_whole_one(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        results.write(path, {"turn": -1, "bulk": []})
        program = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "import itertools, results\nfrom pathlib import Path\n"
            "print('up', flush=True)\n"
            "for turn in itertools.count(): results.write(Path(sys.argv[2]), {'turn': turn, 'bulk': [turn] * 2000})"
        )
        command = [sys.executable, "-c", program, str(Path(results.__file__).parent), str(path)]
        seen = set()
        for _ in range(3):
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None and process.stdout.readline() == b"up\n"
                time.sleep(0.05)
                process.kill()
            found = results.read(path)
            assert found["bulk"] == [found["turn"]] * 2000
            seen.add(found["turn"])
        assert max(seen) > 0

    def test_the_parts_of_an_earlier_run_stay(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        results.started(path, header(), [{"part": "ladder", "status": MEASURED}, {"part": "spec", "status": FAILED}])
        found = results.started(path, header(), [{"part": "spec", "status": NOT_RUN}])
        assert found["boots"] == [{"part": "ladder", "status": MEASURED}, {"part": "spec", "status": NOT_RUN}]
        assert results.read(path) == found

    def test_one_tree_does_not_go_into_the_document_of_the_other(self, tmp_path: Path) -> None:
        results.started(tmp_path / "x.json", header("pristine"), [])
        with pytest.raises(ValueError, match="'pristine'"):
            results.started(tmp_path / "x.json", header("patched"), [])


def worker(page: int) -> Any:
    settings = types.SimpleNamespace(cache_config=types.SimpleNamespace(block_size=page))
    return types.SimpleNamespace(vllm_config=settings)


class TestSteps:
    def test_only_steps_of_all_requests_after_such_a_step_count(self) -> None:
        stamps = [(0.0, 1, 1), (1.0, 2, 2), (1.5, 2, 4), (2.0, 1, 1), (4.0, 2, 2), (4.25, 2, 2)]
        assert steps.together(stamps, 2) == ([500.0, 250.0], 6)

    def test_prompts_differ_from_round_to_round_and_are_the_same_for_both_trees(self) -> None:
        one, again, other = (steps.prompts(500, 2, 30, seed) for seed in (1, 1, 2))
        assert one == again != other
        assert [len(prompt["prompt_token_ids"]) for prompt in one] == [30, 30]
        assert max(max(prompt["prompt_token_ids"]) for prompt in one) < 500

    def test_a_tree_without_the_patch_holds_no_verify_attention(self) -> None:
        assert steps.attention_in_use(worker(800)) == {"page": 800, "verify": []}

    def test_what_the_worker_holds_and_which_batches_the_kernel_takes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cuda = types.SimpleNamespace(
            plan=lambda requests, tokens: object() if requests in (1, 7) and tokens == 5 else None
        )
        made = [types.SimpleNamespace(num_kv_heads=4, group=6, cuda=kernel) for kernel in (cuda, None)]
        module = types.SimpleNamespace(_instances=dict(enumerate(made)))
        monkeypatch.setitem(sys.modules, "vllm.v1.attention.ops.spec_decode_attn", module)
        assert steps.attention_in_use(worker(16))["verify"] == [
            {"heads": 24, "cuda": True, "batches": [1, 7]},
            {"heads": 24, "cuda": False, "batches": []},
        ]


FAKE = """
import argparse, os, subprocess, sys, time
sys.path.insert(0, {folder!r})
from pathlib import Path
import results
parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path)
parser.add_argument("--boot", type=int)
parser.add_argument("--deadline", type=float)
given = parser.parse_args()
document = results.read(given.out)
boot = document["boots"][given.boot]
print("about", boot["part"], os.environ.get("VLLM_SPEC_DECODE_ATTN"), os.environ["PYTHONPATH"], flush=True)
boot["status"] = results.RUNNING
boot["points"][0] |= {{"status": results.MEASURED, "runs": [1.0]}}
boot["points"][1]["status"] = results.RUNNING
results.write(given.out, document)
{rest}
"""


def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rest: str) -> None:
    """A ``steps.py`` that measures one point, begins the next and then does ``rest``."""
    folder = tmp_path / "fake"
    folder.mkdir()
    (folder / "steps.py").write_text(FAKE.format(folder=str(Path(results.__file__).parent), rest=rest))
    monkeypatch.setattr(ladder, "HERE", folder)


def begin(tmp_path: Path, parts: list[str], name: str = "patched") -> Path:
    out = tmp_path / "x.json"
    results.started(out, header(name), plan.boots(name, parts, tmp_path, small=False))
    return out


class TestRun:
    def test_a_boot_there_is_no_time_for_is_not_begun(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake(monkeypatch, tmp_path, "raise SystemExit('started')")
        out = begin(tmp_path, ["ladder"])
        ladder.run(out, tmp_path, tmp_path, Budget(time.time() + 100), 260, ["ladder"])
        (boot,) = results.read(out)["boots"]
        assert {part["status"] for part in (boot, *boot["points"])} == {NOT_RUN}
        assert "it takes about 285 s and 100 were left" in boot["message"]

    def test_at_the_limit_the_process_is_killed_with_what_it_started(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started = tmp_path / "pid"
        sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
        rest = f"Path({str(started)!r}).write_text(str(subprocess.Popen({sleep!r}).pid)); time.sleep(60)"
        fake(monkeypatch, tmp_path, rest)
        out = begin(tmp_path, ["ladder"])
        ladder.boot_once(out, 0, tmp_path, tmp_path, Budget(time.time() + 1.5))
        (boot,) = results.read(out)["boots"]
        assert (boot["status"], boot["message"]) == (FAILED, "killed at the limit of the run")
        assert [point["status"] for point in boot["points"][:3]] == [MEASURED, FAILED, NOT_RUN]
        assert boot["log"].startswith("about ladder 1 ")
        with pytest.raises(ProcessLookupError):
            # Dead, or dead and not yet collected by whom it was left to.
            state = Path(f"/proc/{started.read_text()}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                raise ProcessLookupError
            os.kill(int(started.read_text()), 0)

    def test_one_that_ends_by_itself_is_recorded_with_its_words_and_the_next_is_begun(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fake(monkeypatch, tmp_path, "sys.exit('out of memory')")
        out = begin(tmp_path, ["spec", "long"])
        ladder.run(out, tmp_path, tmp_path, Budget(time.time() + 1000), 1, ["spec", "long"])
        for boot, knob in zip(results.read(out)["boots"], ("1", "None"), strict=True):
            assert (boot["status"], boot["message"]) == (FAILED, "its process ended with 1")
            assert f"about {boot['part']} {knob} {tmp_path}" in boot["log"]
            assert boot["log"].endswith("out of memory\n")

    def test_one_killed_by_a_signal_before_it_wrote_anything(self, tmp_path: Path) -> None:
        out = begin(tmp_path, ["spec"])
        ladder.settle(out, 0, "its process ended with -11", "boom")
        (boot,) = results.read(out)["boots"]
        assert (boot["status"], boot["message"], boot["log"]) == (FAILED, "its process ended with -11", "boom")

    def test_a_termination_ends_the_engine_and_is_written_down(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fake(monkeypatch, tmp_path, f"os.kill({os.getpid()}, 15); time.sleep(60)")
        out = begin(tmp_path, ["ladder"])
        before = signal.signal(signal.SIGTERM, ladder.interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                ladder.boot_once(out, 0, tmp_path, tmp_path, Budget(time.time() + 60))
        finally:
            signal.signal(signal.SIGTERM, before)
        (boot,) = results.read(out)["boots"]
        assert (boot["status"], boot["message"]) == (FAILED, "the run was interrupted")

    def test_an_engine_whose_caller_was_killed_ends_too(self, tmp_path: Path) -> None:
        program = (
            "import sys, time, threading; sys.path.insert(0, sys.argv[1])\n"
            "import os, steps\nprint(os.getpid(), flush=True)\nsteps.watch(time.time() + 60, -1)"
        )
        command = [sys.executable, "-c", program, str(Path(steps.__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
            assert process.wait(20) == -signal.SIGKILL

    def test_no_setting_of_vllm_is_inherited(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VLLM_SPEC_DECODE_ATTN", "1")
        monkeypatch.setenv("PYTHONPATH", "/more")
        found = ladder.environment(tmp_path, tmp_path / "work", {}, small=False)
        assert "VLLM_SPEC_DECODE_ATTN" not in found and "VLLM_TARGET_DEVICE" not in found
        assert found["PYTHONPATH"] == f"{tmp_path}{os.pathsep}/more"
        assert found["VLLM_USE_FLASHINFER_SAMPLER"] == "0"

    def test_what_is_compiled_of_one_tree_is_not_loaded_by_the_other(self, tmp_path: Path) -> None:
        one, other = (ladder.environment(tmp_path / name, tmp_path, {}, small=False) for name in ("a", "b"))
        assert one["VLLM_CACHE_ROOT"] != other["VLLM_CACHE_ROOT"]
        # These are found by their content.
        assert one["TRITON_CACHE_DIR"] == other["TRITON_CACHE_DIR"]

    def test_a_directory_without_vllm_is_refused(self, tmp_path: Path) -> None:
        words = ["--name", "patched", "--out", "x", "--work", "w", "--limit", "9"]
        done = subprocess.run(
            [sys.executable, ladder.__file__, "--tree", str(tmp_path), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 2 and "holds no vllm/" in done.stderr
        assert list(tmp_path.iterdir()) == []
