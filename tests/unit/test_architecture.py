"""The layers: each imports only itself and those above it; and nothing below the command line prints or exits."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import patchforge

SOURCE = Path(patchforge.__file__).parent
SHARED = {"errors", "resources", "__init__"}
LAYERS = [
    {"diff", "headers"},
    {"series", "tree"},
    {"engine", "releases"},
    {"table", "lint", "graph", "evidence", "serving"},
    {"branch", "image"},
    {"exchange"},
    {"reports"},
    {"cli"},
    {"__main__"},
]
BESIDE = {("series", "diff"), ("series", "headers")}
MODULES = sorted(SOURCE.rglob("*.py"))


def package(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def level(name: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if name in layer)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def test_every_package_has_a_layer() -> None:
    assert {package(p) for p in MODULES} - SHARED == set().union(*LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_imports_go_up_only(path: Path) -> None:
    mine = package(path)
    if mine in SHARED:
        return
    for name in imports(parsed(path)):
        parts = name.split(".")
        if parts[0] != "patchforge" or len(parts) < 2:
            continue
        other = parts[1]
        if other in SHARED or other == mine or other == "__version__":
            continue
        assert level(other) < level(mine), f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_core_never_prints_exits_or_reads_the_environment(path: Path) -> None:
    if package(path) in ("cli", "__main__"):
        return
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Name):
            assert node.id not in ("print", "exit", "quit", "input", "eval", "exec", "breakpoint"), (
                f"{path.name}: {node.id}"
            )
        if isinstance(node, ast.Attribute):
            dotted = ast.unparse(node)
            if (path.name, dotted) == ("compiling.py", "os._exit"):  # the end of a forked child, not of the program
                continue
            assert dotted not in ("os.environ", "os.getenv", "sys.exit", "os._exit", "os.system"), (
                f"{path.name}: {dotted}"
            )


@pytest.mark.parametrize("name", ["diff", "headers"])
def test_pure_layers_do_no_input_or_output(name: str) -> None:
    for path in (SOURCE / name).glob("*.py"):
        found = imports(parsed(path))
        assert not found & {"os", "io", "pathlib", "subprocess", "tempfile", "shutil", "socket"}, path.name


def test_planning_reads_no_file() -> None:
    for name in ("plan", "place", "scope", "diagnose", "explain", "model"):
        found = imports(parsed(SOURCE / f"engine/{name}.py"))
        assert not any(f.split(".")[0] in ("os", "pathlib", "subprocess") for f in found), name
        assert not any(f.startswith("patchforge.tree") for f in found), name


def test_no_shell_anywhere() -> None:
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                assert isinstance(node.value, ast.Constant), path.name
                assert node.value.value is False, path.name


def test_modules_stay_small() -> None:
    long = {p.name: n for p in MODULES if (n := len(p.read_text().splitlines())) > 350}
    assert not long
