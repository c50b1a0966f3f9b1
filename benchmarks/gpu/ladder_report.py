"""The page of the ladder: ``python benchmarks/gpu/ladder_report.py pristine.json patched.json [samplers.md]`` prints Markdown.

Says beside every ratio whether the spreads overlap, and of everything that was not measured why.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geometry
import results
from results import FAILED, MEASURED, NOT_RUN, RUNNING

LIBRARIES = {"torch": "torch", "triton": "Triton", "transformers": "transformers", "vllm": "vLLM", "python": "Python"}
Key = tuple[Any, ...]
SAMPLED = "Sampled is temperature 1, top-k 20, top-p 0.95."


@dataclass(frozen=True)
class Figure:
    """A median and the ends of its spread."""

    median: float
    low: float
    high: float
    digits: int

    def __str__(self) -> str:
        return f"{self.median:,.{self.digits}f} [{self.low:,.{self.digits}f}, {self.high:,.{self.digits}f}]"


def figure(point: dict[str, Any] | None) -> Figure | None:
    """What was measured at a point: of runs the median and both ends, of steps the median and the tenths of all rounds."""
    if point is None or point["status"] != MEASURED:
        return None
    if point["kind"] == "generate":
        return Figure(statistics.median(point["runs"]), min(point["runs"]), max(point["runs"]), 1)
    rounds = point["rounds"]
    median = statistics.median(found["median"] for found in rounds)
    return Figure(median, min(found["p10"] for found in rounds), max(found["p90"] for found in rounds), 3)


def ratio(over: Figure | None, under: Figure | None) -> str:
    """``over / under``; in brackets where the two spreads overlap, for then it may be nothing."""
    if over is None or under is None:
        return ""
    found = f"{over.median / under.median:.3f}"
    apart = over.low > under.high or under.low > over.high
    return found if apart else f"({found})"


def boot_of(document: dict[str, Any], part: str) -> dict[str, Any] | None:
    return next((boot for boot in document["boots"] if boot["part"] == part), None)


def points(boot: dict[str, Any] | None) -> dict[Key, dict[str, Any]]:
    """The points of a boot by what they measure."""
    names = {"generate": ("sampling", "batch"), "steps": ("batch", "context", "sampling")}
    found = boot["points"] if boot is not None else []
    return {tuple(point[name] for name in names[point["kind"]]): point for point in found}


def shown(point: dict[str, Any] | None) -> str:
    if point is None:
        return "not run"
    return str(figure(point) or (FAILED if point["status"] == RUNNING else point["status"]))


def keys(*of: dict[Key, dict[str, Any]]) -> list[Key]:
    """All keys, in the order in which they first come."""
    return list(dict.fromkeys(key for points in of for key in points))


def paragraph(text: str) -> list[str]:
    """Lines of a page, and an empty one."""
    return [*textwrap.wrap(text, 128, break_long_words=False, break_on_hyphens=False), ""]


def row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def ladder_lines(pristine: dict[str, Any], patched: dict[str, Any]) -> list[str]:
    """Tokens a second: more is better."""
    old, new = (points(boot_of(document, "ladder")) for document in (pristine, patched))
    if not old and not new:
        return []
    lines = [
        "## Tokens a second",
        "",
        *paragraph(
            "Requests at once, 128 random tokens in and 256 out each, end of text ignored, from the first prompt to the last"
            f" token: median [least, most] of the runs. {SAMPLED}"
        ),
        row(["sampling", "requests", "pristine", "patched", "patched / pristine"]),
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for key in keys(old, new):
        one, two = old.get(key), new.get(key)
        lines.append(row([*key, shown(one), shown(two), ratio(figure(two), figure(one))]))
    return [*lines, ""]


def expected_tokens(point: dict[str, Any] | None) -> str:
    if point is None or point["status"] != MEASURED:
        return ""
    return f"{statistics.fmean(found['tokens'] for found in point['rounds']):.2f}"


def steps_counted(point: dict[str, Any] | None) -> str:
    if point is None or point["status"] != MEASURED:
        return ""
    return str(sum(found["steps"] for found in point["rounds"]))


def spec_lines(pristine: dict[str, Any], patched: dict[str, Any]) -> list[str]:
    """Milliseconds a step: less is better, so the ratios are pristine over patched."""
    old, new = (points(boot_of(document, "spec")) for document in (pristine, patched))
    off = points(boot_of(patched, "long"))
    if not old and not new:
        return []
    lines = [
        "## Milliseconds a step with drafts",
        "",
        *paragraph(
            "Four MTP drafts a step, so that the target verifies five tokens a request. What random weights draft is not what"
            " trained ones would (a column says how many tokens a step yielded), so milliseconds a step are what counts; tokens a"
            f" second would say nothing. {SAMPLED} Median [first tenth, last tenth] of the steps in which all requests decode."
            f" The last two columns are of pristine{', patched and knobs off' if off else ' and patched'}."
        ),
        row(
            [
                *("requests", "context", "drawn", "pristine", "patched", "pristine / patched"),
                *(("patched, knobs off", "pristine / knobs off") if off else ()),
                *("tokens a step", "steps"),
            ]
        ),
        "| ---: | ---: | --- |" + " ---: |" * (7 if off else 5),
    ]
    for key in keys(old, new, off):
        one, two, three = (found.get(key) for found in (old, new, off))
        batch, context, sampling = key
        ran = (one, two, three) if off else (one, two)
        lines.append(
            row(
                [
                    *(batch, f"{context:,}", sampling, shown(one), shown(two), ratio(figure(one), figure(two))),
                    *((shown(three), ratio(figure(one), figure(three))) if off else ()),
                    " / ".join(expected_tokens(point) or "–" for point in ran),
                    " / ".join(steps_counted(point) or "–" for point in ran),
                ]
            )
        )
    return [*lines, ""]


def attention_lines(patched: dict[str, Any]) -> list[str]:
    """What the worker said it holds."""
    boot = boot_of(patched, "spec")
    found = (boot or {}).get("attention")
    if boot is None or found is None:
        return []
    if not isinstance(found, dict):
        return [f"Which verify attention ran is {found}.", ""]
    held = [made for made in found["verify"] if made["cuda"]]
    if not held:
        return ["**The patched engine did not hold the CUDA verify attention, so these figures are not its.**", ""]
    batches = ", ".join(str(number) for number in held[0]["batches"])
    return paragraph(
        f"The patched engine's layers held the CUDA verify attention (library: {boot.get('library')}), which takes batches of"
        f" {batches} requests with five tokens each; others run what they ran in the pristine one. Pages have {found['page']}"
        " positions."
    )


def fate(part: dict[str, Any]) -> str:
    """What became of a boot or a point, and why."""
    if part["status"] == RUNNING:
        return f"{FAILED}: the run was killed in the middle of it"
    return f"{part['status']}: {line(part.get('message', ''))}"


def left_out(document: dict[str, Any]) -> list[str]:
    """A line for everything that has no figure."""
    name, lines = document["name"], []
    for boot in document["boots"]:
        where = f"{name}, {boot['part']}"
        if boot["status"] != MEASURED:
            lines.append(f"- {where}: {fate(boot)}")
        for key, point in points(boot).items():
            if point["status"] != MEASURED and (boot["status"] == MEASURED or point["status"] != NOT_RUN):
                what = " ".join(map(str, key)) if point["kind"] == "generate" else f"{key[0]} at {key[1]:,}, {key[2]}"
                lines.append(f"- {where}, {what}: {fate(point)}")
    absent = {"ladder", "spec"} | ({"long"} if name == "patched" else set())
    absent -= {boot["part"] for boot in document["boots"]}
    return [*lines, *(f"- {name}, {part}: not asked for" for part in sorted(absent))]


def line(message: str) -> str:
    """The first line of a message, cut."""
    first = message.splitlines()[0] if message else ""
    return first if len(first) <= 300 else first[:297] + "..."


def header_lines(pristine: dict[str, Any], patched: dict[str, Any]) -> list[str]:
    """Where it was measured; what differs between the two is said, for then they do not compare."""
    found = []
    for document in (pristine, patched):
        told: dict[str, str] = next((boot["versions"] for boot in document["boots"] if "versions" in boot), {})
        libraries = [f"{shown} {told[name]}" for name, shown in LIBRARIES.items() if name in told]
        found.append(", ".join([document["card"], f"driver {document['driver']}", *libraries]))
    dates = " and ".join(sorted({document["date"] for document in (pristine, patched)}))
    sizes = geometry.parameters(geometry.SMALL if pristine["small"] else geometry.FULL)
    booted = [
        f"{document['name']} {boot['part']} {boot['boot_s']:.0f} s"
        for document in (pristine, patched)
        for boot in document["boots"]
        if "boot_s" in boot
    ]
    title = f"The engine on an {pristine['card'].removeprefix('NVIDIA ')}"
    about = (
        f"The hybrid of 64 layers, {sizes['target'] / 1e9:.1f} billion weights in bfloat16, random and read from no disk."
        " The same settings for both trees: torch.compile and CUDA graphs, Triton for the prefill of the linear attention, no"
        " FlashInfer, no prefix cache. One process a column of a table."
    )
    if pristine["small"]:
        title, about = "A dry run: these figures mean nothing", "The small model on a CPU."
    knobs = sorted({f"`{name}={value}`" for boot in patched["boots"] for name, value in boot["knobs"].items()})
    elsewhere = f" **The patched tree was measured elsewhere: {found[1]}.**" if found[0] != found[1] else ""
    return [
        f"# {title}",
        "",
        *paragraph(f"Made by `benchmarks/gpu/ladder.py` and `ladder_report.py`, {dates}: {found[0]}.{elsewhere}"),
        *paragraph(
            f"{about} The patched tree ran with {', '.join(knobs) or 'no knobs'}. Boots: {', '.join(booted) or 'none'}."
        ),
        *paragraph(
            "A ratio above 1 says that the patched tree is faster; one in brackets that the spreads of the two overlap, so that"
            " it may be nothing."
        ),
    ]


def report(pristine: dict[str, Any], patched: dict[str, Any], samplers: str = "") -> str:
    """The page.

    Raises:
        ValueError: where a document is of the other tree, or one is of the small model and the other not.
    """
    for document, name in ((pristine, "pristine"), (patched, "patched")):
        if document["name"] != name:
            raise ValueError(f"the document of the {name} tree is one of {document['name']!r}")
    if pristine["small"] != patched["small"]:
        raise ValueError("one is a dry run of the small model, and the other not")
    lines = [
        *header_lines(pristine, patched),
        *ladder_lines(pristine, patched),
        *spec_lines(pristine, patched),
        *attention_lines(patched),
    ]
    if samplers:
        lines += ["## Sampling alone", "", "By `benchmarks/gpu/samplers.py`:", "", samplers.strip(), ""]
    missing = [*left_out(pristine), *left_out(patched)]
    if not samplers:
        missing.append("- sampling alone (`benchmarks/gpu/samplers.py`): not given to the report")
    lines += ["## What was not run", "", *(missing or ["Nothing was left out."])]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pristine", type=Path)
    parser.add_argument("patched", type=Path)
    parser.add_argument("samplers", type=Path, nargs="?")
    given = parser.parse_args()
    samplers = given.samplers.read_text() if given.samplers else ""
    try:
        page = report(results.read(given.pristine), results.read(given.patched), samplers)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(page, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
