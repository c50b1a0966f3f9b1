"""The page made of two documents of the ladder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ladder_report
import plan
import pytest
from results import FAILED, MEASURED, RUNNING
from test_ladder import header


def measured(document: dict[str, Any], speed: float) -> dict[str, Any]:
    """The document as if everything had been measured, ``speed`` times as fast as 100 tokens a second or 20 ms a step."""
    for boot in document["boots"]:
        if not boot["points"]:
            continue
        boot |= {
            "status": MEASURED,
            "boot_s": 200.4,
            "versions": {"torch": "2.11", "triton": "3.6", "vllm": "0.31.0"},
            "library": "found",
            "attention": {"page": 800, "verify": [{"heads": 24, "cuda": True, "batches": [1, 7]}]},
        }
        for point in boot["points"]:
            point |= {"status": MEASURED}
            if point["kind"] == "generate":
                point["runs"] = [speed * value for value in (99.0, 100.0, 101.0)]
            else:
                took = {"median": 20 / speed, "p10": 19.9 / speed, "p90": 20.1 / speed, "steps": 64, "tokens": 1.0}
                point["rounds"] = [{**took, "mean": 20 / speed}] * point["rounds"]
    return document


@pytest.fixture
def documents(tmp_path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    made = {}
    for name, speed in (("pristine", 1.0), ("patched", 1.25)):
        parts = ["ladder", "spec"] if name == "pristine" else list(plan.PARTS)
        made[name] = measured({**header(name), "boots": plan.boots(name, parts, tmp_path, small=False)}, speed)
        # As they come out of a file.
        made[name] = json.loads(json.dumps(made[name]))
    return made["pristine"], made["patched"]


class TestReport:
    def test_figures_side_by_side(self, documents: tuple[dict[str, Any], dict[str, Any]]) -> None:
        page = ladder_report.report(*documents, "| a table |")
        assert "| greedy | 64 | 100.0 [99.0, 101.0] | 125.0 [123.8, 126.2] | 1.250 |" in page
        line = next(line for line in page.splitlines() if line.startswith("| 1 | 25,600 |"))
        patched = "16.000 [15.920, 16.080]"
        assert line == (
            f"| 1 | 25,600 | greedy | 20.000 [19.900, 20.100] | {patched} | 1.250 | {patched} | 1.250 | 1.00 / 1.00 / 1.00 | 192 / 192 / 192 |"
        )
        assert "NVIDIA H200, driver 580, torch 2.11, Triton 3.6, vLLM 0.31.0." in " ".join(page.split())
        assert "takes batches of 1, 7 requests" in " ".join(page.split())
        assert "| a table |" in page
        assert page.rstrip().endswith("Nothing was left out.")

    def test_a_difference_within_the_spread_is_in_brackets(
        self, documents: tuple[dict[str, Any], dict[str, Any]]
    ) -> None:
        documents[1]["boots"][0]["points"][0]["runs"] = [100.5, 101.5, 102.5]
        documents[1]["boots"][0]["points"][1]["runs"] = [101.5, 101.6, 102.5]
        page = ladder_report.report(*documents)
        assert "| greedy | 1 | 100.0 [99.0, 101.0] | 101.5 [100.5, 102.5] | (1.015) |" in page
        assert "| greedy | 8 | 100.0 [99.0, 101.0] | 101.6 [101.5, 102.5] | 1.016 |" in page

    def test_what_failed_and_what_was_not_run_is_said(
        self, documents: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path
    ) -> None:
        pristine, patched = documents
        pristine["boots"][0]["points"][3] = {
            **plan.boots("pristine", ["ladder"], tmp_path, small=False)[0]["points"][3],
            "message": "it takes about 30 s and 4 were left",
        }
        patched["boots"][1]["points"][0] |= {"status": FAILED, "message": "RuntimeError: boom\nat a place"}
        patched["boots"][2] = plan.boots("patched", ["long"], tmp_path, small=False)[0]
        patched["boots"][2] |= {"status": FAILED, "message": "killed at the limit of the run"}
        page = ladder_report.report(pristine, patched)
        assert "| greedy | 64 | not run | 125.0 [123.8, 126.2] |  |" in page
        assert (
            "| 1 | 1,024 | greedy | 20.000 [19.900, 20.100] | failed |  | not run |  | 1.00 / – / – | 192 / – / – |"
            in page
        )
        missing = page.partition("## What was not run")[2].split("\n")
        assert [line for line in missing if line] == [
            "- pristine, ladder, greedy 64: not run: it takes about 30 s and 4 were left",
            "- patched, spec, 1 at 1,024, greedy: failed: RuntimeError: boom",
            "- patched, long: failed: killed at the limit of the run",
            "- sampling alone (`benchmarks/gpu/samplers.py`): not given to the report",
        ]

    def test_a_run_that_was_killed_outright_leaves_no_figure_out_in_silence(
        self, documents: tuple[dict[str, Any], dict[str, Any]]
    ) -> None:
        boot = documents[1]["boots"][1]
        boot |= {"status": RUNNING}
        boot["points"][0] |= {"status": RUNNING}
        page = ladder_report.report(*documents)
        assert "- patched, spec: failed: the run was killed in the middle of it" in page
        assert "- patched, spec, 1 at 1,024, greedy: failed: the run was killed in the middle of it" in page
        assert "| 1 | 1,024 | greedy | 20.000 [19.900, 20.100] | failed |" in page

    def test_a_part_of_neither_tree_has_no_table(self, documents: tuple[dict[str, Any], dict[str, Any]]) -> None:
        del documents[0]["boots"][0], documents[1]["boots"][0]
        page = ladder_report.report(*documents)
        assert "## Tokens a second" not in page and "## Milliseconds a step" in page
        assert "- pristine, ladder: not asked for" in page and "- patched, ladder: not asked for" in page

    def test_parts_nobody_asked_for_are_said_too(self, documents: tuple[dict[str, Any], dict[str, Any]]) -> None:
        del documents[0]["boots"][1], documents[1]["boots"][2]
        page = ladder_report.report(*documents)
        assert "- pristine, spec: not asked for" in page and "- patched, long: not asked for" in page
        assert "| 7 | 8,192 | greedy | not run | 16.000 [15.920, 16.080] |  | – / 1.00 | – / 64 |" in page

    def test_without_the_kernel_in_the_engine_the_page_does_not_credit_it(
        self, documents: tuple[dict[str, Any], dict[str, Any]]
    ) -> None:
        documents[1]["boots"][1]["attention"]["verify"][0]["cuda"] = False
        assert "did not hold the CUDA verify attention" in ladder_report.report(*documents)

    def test_another_card_is_said(self, documents: tuple[dict[str, Any], dict[str, Any]]) -> None:
        documents[1]["driver"] = "581"
        assert "measured elsewhere: NVIDIA H200, driver 581" in ladder_report.report(*documents)

    def test_documents_in_the_wrong_order_and_of_unlike_models_are_refused(
        self, documents: tuple[dict[str, Any], dict[str, Any]]
    ) -> None:
        with pytest.raises(ValueError, match="of the pristine tree is one of 'patched'"):
            ladder_report.report(documents[1], documents[0])
        documents[1]["small"] = True
        with pytest.raises(ValueError, match="dry run"):
            ladder_report.report(*documents)
