"""The engine end to end, one tree at a time, on a card or, small, on a CPU.

    python benchmarks/gpu/ladder.py --tree DIR --name pristine|patched --out X.json --work DIR --limit SECONDS
        [--parts ladder,spec,long] [--small]

The tree holds ``vllm/`` and goes first in the PYTHONPATH of the process that boots the engine.  The model is the 27B hybrid with
dummy weights.  Parts, each a boot:

- ``ladder``: tokens a second at 1 to 64 requests, 128 tokens in and 256 out; a patched tree has its knobs on
- ``spec``: milliseconds a step with four MTP drafts after 1k to 32k tokens; a patched tree has its knobs on
- ``long``: the same of a patched tree with its knobs off

The parts of an earlier run that X.json has stay there.  What there is no time for is written down as not run, failures with what
they said.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import geometry
import plan
import results
from results import FAILED, NOT_RUN, RUNNING, Budget

HERE = Path(__file__).parent
LOG_TAIL = 4000
# Less than this after a boot measures nothing of use.
SLACK = 20.0


def environment(tree: Path, work: Path, knobs: dict[str, str], *, small: bool) -> dict[str, str]:
    """Of the process that boots the engine: nothing of vLLM's settings is inherited, and caches lie in ``work``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("VLLM_")}
    paths = [str(tree), *filter(None, [os.environ.get("PYTHONPATH")])]
    # vLLM's own cache is kept apart for each tree, by where it lies; the other two are addressed by content.
    own = f"vllm-{hashlib.sha256(str(tree).encode()).hexdigest()[:8]}"
    caches = {"VLLM_CACHE_ROOT": own, "TRITON_CACHE_DIR": "triton", "TORCHINDUCTOR_CACHE_DIR": "inductor"}
    return {
        **inherited,
        **plan.ENVIRONMENT,
        **(plan.CPU_ENVIRONMENT if small else {}),
        **{name: str(work / folder) for name, folder in caches.items()},
        **knobs,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
    }


def card() -> dict[str, str]:
    """Name and driver of the first card, asked of the driver: no process of ours holds a context on it."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return {"card": "none", "driver": "none"}
    name, driver = done.stdout.strip().split(", ")
    return {"card": name, "driver": driver}


def members(group: int) -> list[int]:
    """The processes of a group that still run; one that is dead and not yet collected holds no memory of a card."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def end(process: subprocess.Popen[bytes]) -> None:
    """End the process and the engine it started; the next boot wants the whole memory of the card."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    give_up = time.monotonic() + 20
    while members(process.pid) and time.monotonic() < give_up:
        time.sleep(0.1)


def boot_once(out: Path, index: int, tree: Path, work: Path, budget: Budget) -> None:
    """One boot, to its end or the deadline; afterwards nothing in the document is left running."""
    document = results.read(out)
    boot = document["boots"][index]
    log = work / f"{document['name']}-{boot['part']}.log"
    command = [sys.executable, str(HERE / "steps.py"), "--out", str(out), "--boot", str(index)]
    env = environment(tree, work, boot["knobs"], small=document["small"])
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--deadline", str(budget.deadline)],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        why: str | None = "the run was interrupted"
        try:
            status = process.wait(max(1.0, budget.left()))
            why = f"its process ended with {status}" if status else None
        except subprocess.TimeoutExpired:
            why = "killed at the limit of the run"
        finally:
            end(process)
            settle(out, index, why, log.read_text(errors="replace")[-LOG_TAIL:])


def settle(out: Path, index: int, why: str | None, log: str) -> None:
    """Say of what still runs why it ended; of a boot that ended badly keep the last of its log."""
    document = results.read(out)
    boot = document["boots"][index]
    for part in (boot, *boot["points"]):
        if part["status"] == RUNNING:
            part |= {"status": FAILED, "message": why or "it ended without a word"}
    if why is not None:
        boot |= {"log": log}
        if boot["status"] == NOT_RUN:
            boot |= {"status": FAILED, "message": why}
    results.write(out, document)


def interrupt(number: int, frame: object) -> None:
    """A limit of somebody else's: what was measured is in the file, and the card must not stay taken."""
    raise KeyboardInterrupt


def run(out: Path, tree: Path, work: Path, budget: Budget, boot_seconds: float, parts: list[str]) -> None:
    """Boot after boot, while there is time for one and something after it."""
    for index, boot in enumerate(results.read(out)["boots"]):
        if boot["part"] not in parts or not boot["points"]:
            continue
        if refusal := budget.refusal(boot_seconds + SLACK):
            document = results.read(out)
            for part in (document["boots"][index], *document["boots"][index]["points"]):
                part |= {"status": NOT_RUN, "message": f"with its boot {refusal}"}
            results.write(out, document)
            continue
        boot_once(out, index, tree, work, budget)
        after = results.read(out)["boots"][index]
        print(f"{after['part']}: {after['status']} {after.get('message', '')}".strip(), flush=True)
        # The next boot finds kernels compiled by this one, but has others too.
        boot_seconds = min(boot_seconds, after.get("boot_s", boot_seconds))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, required=True, help="holds vllm/")
    parser.add_argument("--name", choices=("pristine", "patched"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="the model, caches and logs; to be kept between runs")
    parser.add_argument("--limit", type=float, required=True, help="seconds of the whole run")
    parser.add_argument("--parts", default="ladder,spec", help="of ladder, spec and long, in this order of running")
    parser.add_argument("--boot-seconds", type=float, help="what a boot is expected to take (260; small: 60)")
    parser.add_argument("--small", action="store_true", help="4 layers on a CPU: does it run, not how fast")
    given = parser.parse_args()
    given.parts = given.parts.split(",")
    given.boot_seconds = given.boot_seconds or (60.0 if given.small else 260.0)
    if unknown := set(given.parts) - set(plan.PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if not (given.tree / "vllm").is_dir():
        parser.error(f"{given.tree} holds no vllm/")
    return given


def main() -> int:
    budget = Budget(time.time())
    signal.signal(signal.SIGTERM, interrupt)
    given = arguments()
    budget.deadline += given.limit
    out, work, tree = given.out.resolve(), given.work.resolve(), given.tree.resolve()
    model = work / ("small" if given.small else "full")
    geometry.write(geometry.SMALL if given.small else geometry.FULL, model)
    header: dict[str, Any] = {
        "name": given.name,
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "small": given.small,
        "limit_s": given.limit,
        **({"card": "none", "driver": "none"} if given.small else card()),
    }
    results.started(out, header, plan.boots(given.name, given.parts, model, small=given.small))
    run(out, tree, work, budget, given.boot_seconds, given.parts)
    boots = results.read(out)["boots"]
    return int(any(boot["status"] == FAILED for boot in boots if boot["part"] in given.parts))


if __name__ == "__main__":
    sys.exit(main())
