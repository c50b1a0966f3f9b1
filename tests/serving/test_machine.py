"""What is said of a machine, from files and the driver's tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchforge.serving.machine import Machine, look

TWO = "8.6, 24576, 1\n9.0, 143771, 2048\n"


def driver(folder: Path, output: str, status: int = 0) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{output}END\nexit {status}\n")
    tool.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_the_smallest_of_several(tmp_path: Path) -> None:
    found = look(driver(tmp_path / "bin", TWO), tmp_path)
    assert (found.gpus, found.sm, found.gpu_bytes, found.gpu_used) == (2, 86, 24576 << 20, 2 << 30)
    assert (found.facts()["gpu_gib"], found.facts()["gpu_used_gib"]) == (24, 2)


@pytest.mark.parametrize(
    ("visible", "gpus", "sm"),
    [
        ("1", 1, 90),
        ("0,1", 2, 86),
        ("", 0, None),
        ("-1", 0, None),
        ("1,-1,0", 1, 90),
        ("GPU-abc", 1, 86),
        ("7", 0, None),
    ],
)
def test_only_those_that_may_be_used(tmp_path: Path, visible: str, gpus: int, sm: int | None) -> None:
    found = look({**driver(tmp_path / "bin", TWO), "CUDA_VISIBLE_DEVICES": visible}, tmp_path)
    assert (found.gpus, found.sm) == (gpus, sm)


def test_without_the_tool_device_nodes_are_counted(tmp_path: Path) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev" / name).write_text("")
    found = look({"PATH": str(tmp_path)}, tmp_path)
    assert (found.gpus, found.sm, found.gpu_bytes) == (2, None, None)
    assert found.shm_bytes is not None and found.shm_bytes > 0


@pytest.mark.parametrize(("output", "status"), [("", 0), ("no devices\n", 0), (TWO, 9)])
def test_a_tool_that_fails_says_nothing(tmp_path: Path, output: str, status: int) -> None:
    found = look(driver(tmp_path / "bin", output, status), tmp_path)
    assert found == Machine(None, None, None, None, False)
    assert all(value is None for name, value in found.facts().items() if name != "wsl2")


def test_wsl2(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    for text, wsl2 in (("Linux 5.15.90.1-microsoft-standard-WSL2", True), ("Linux 6.1.0", False)):
        (tmp_path / "proc/version").write_text(text)
        assert look({"PATH": "/nowhere"}, tmp_path).wsl2 is wsl2
