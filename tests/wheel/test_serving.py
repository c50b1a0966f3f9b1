"""Every flag, variable and value of the modes table exists in the pinned release, or comes from a patch of the series."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from place import shipped

from patchforge.series.parsed import header_of
from patchforge.series.project import Series
from patchforge.serving.installed import header_knobs, registry_names
from patchforge.serving.table import Output, Table


@pytest.fixture(scope="module")
def table() -> Table:
    return shipped()


class Source:
    """Definitions of the wheel, read from its syntax trees; nothing is imported."""

    def __init__(self, root: Path) -> None:
        self.root = root / "vllm"

    def module(self, path: str) -> ast.Module:
        return ast.parse((self.root / path).read_bytes())

    def fields(self, path: str, name: str) -> dict[str, str]:
        """The annotated fields of a class: name to annotation."""
        (found,) = [n for n in ast.walk(self.module(path)) if isinstance(n, ast.ClassDef) and n.name == name]
        return {
            node.target.id: ast.unparse(node.annotation)
            for node in found.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }

    def literal(self, path: str, name: str) -> set[Any]:
        """The values of ``name = Literal[…]``."""
        for node in self.module(path).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
                return {c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant)}
        raise AssertionError(f"{path} defines no {name}")

    def flags(self) -> dict[str, str]:
        """Every flag of the server, with the annotation of the field behind it where there is one of that name."""
        engine = self.fields("engine/arg_utils.py", "EngineArgs") | self.fields(
            "engine/arg_utils.py", "AsyncEngineArgs"
        )
        found: dict[str, str] = {}
        for node in ast.walk(self.module("engine/arg_utils.py")):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                for word in node.args:
                    if isinstance(word, ast.Constant) and str(word.value).startswith("--"):
                        found[word.value] = engine.get(word.value[2:].replace("-", "_"), "")
        for name in ("BaseFrontendArgs", "FrontendArgs"):
            for field, annotation in self.fields("entrypoints/launchers/cli_args.py", name).items():
                found["--" + field.replace("_", "-")] = annotation
        return found


@pytest.fixture(scope="module")
def source(pristine: Path) -> Source:
    return Source(pristine)


@pytest.fixture(scope="module")
def added(series: Series) -> dict[str, set[str]]:
    """The variables each patch of the series declares, itself or through a patch it requires."""
    found: dict[str, set[str]] = {}
    for patch in series.patches:
        header = header_of(patch)
        found[patch.name] = {knob.name for knob in header_knobs(header.get("Env"))}
        for name in (header.get("Requires") or "").replace(",", " ").split():
            found[patch.name] |= found[name]
    return found


def outputs(table: Table) -> Iterator[tuple[str, tuple[str, ...], Output]]:
    for knob in table.knobs:
        for output in knob.becomes:
            yield knob.name, knob.patches, output
    for output, _ in table.always:
        yield "always", (), output


def test_the_definitions_are_found(source: Source) -> None:
    """The reading above is itself right: things known to be there are, others are not."""
    flags = source.flags()
    assert len(flags) > 200
    assert {"--tensor-parallel-size", "--host", "--api-key", "--max-model-len"} <= set(flags)
    assert flags["--enable-prefix-caching"] == "bool | None" and "--enable-prefix-cashing" not in flags


def test_every_flag_exists(source: Source, table: Table) -> None:
    flags = source.flags()
    for knob, _, output in outputs(table):
        if not output.is_flag:
            continue
        name = output.name
        if name.startswith("--no-"):
            name = "--" + name.removeprefix("--no-")
            assert "bool" in flags.get(name, ""), f"{knob}: {output.name}"
        if name == "--headless":
            continue  # no field: test_the_reserved_words_that_are_no_fields_exist_too
        assert name in flags, f"{knob}: {name}"
        if output.switch or (
            output.value is None and output.json is None and not output.map and is_boolean(table, knob)
        ):
            assert "bool" in flags[name], f"{knob}: {name} takes a value"
    for flag in table.security.reserved:
        # These two are looked at before the flags are read.
        assert flag in flags or flag in ("--config", "--omni", "--grpc"), flag


def is_boolean(table: Table, name: str) -> bool:
    knob = table.knob(name)
    return knob is not None and knob.kind == "boolean"


def test_the_reserved_words_that_are_no_fields_exist_too(pristine: Path) -> None:
    for word, path in (
        ("--config", "utils/argparse_utils.py"),
        ("--omni", "entrypoints/cli/main.py"),
        ("--grpc", "entrypoints/launchers/cli_args.py"),
        ("--headless", "entrypoints/launchers/cli_args.py"),
    ):
        assert f'"{word}"' in (pristine / "vllm" / path).read_text(), word


def test_every_variable_exists(pristine: Path, table: Table, added: dict[str, set[str]]) -> None:
    assert table.registry is not None
    known = registry_names((pristine / "vllm" / table.registry.file).read_bytes(), table.registry.name)
    assert known is not None and len(known) > 200
    for knob, patches, output in outputs(table):
        if output.is_flag or not output.name.startswith(table.registry.prefix):
            continue
        carried = [patch for patch in patches if patch in added]
        if output.name in known:
            continue
        assert patches, f"{knob}: {output.name} is not in the release, and no patch is named"
        if len(carried) == len(patches):
            assert any(output.name in added[patch] for patch in carried), f"{knob}: no Env header has {output.name}"
    assert table.security.key in known and set(table.security.bypasses) <= known


def test_variables_read_by_others(pristine: Path, table: Table) -> None:
    """Those without the prefix: vLLM's sources speak of them, or a library's do."""
    elsewhere = {"FLASHINFER_DISABLE_VERSION_CHECK"}  # FlashInfer's own
    for knob, _, output in outputs(table):
        if output.is_flag or output.name.startswith("VLLM_") or output.name in elsewhere:
            continue
        assert any(output.name in path.read_text() for path in (pristine / "vllm").glob("**/*.py")), (knob, output.name)


def test_every_value_is_one_the_flag_takes(source: Source, table: Table, added: dict[str, set[str]]) -> None:
    def values(knob: str) -> set[Any]:
        found = table.knob(knob)
        assert found is not None
        return set(found.values) - {"auto", "off"}

    knob = table.knob("KV")
    assert knob is not None
    dtypes = source.literal("config/cache.py", "CacheDType")
    mapped = {value: name for value, name in knob.becomes[0].map.items() if value != "kvarn" or "kvarn" in added}
    assert set(mapped.values()) <= dtypes or "kvarn" in added
    assert set(mapped.values()) - dtypes <= {"kvarn_k4v2_g128"}
    assert values("SSM_DTYPE") <= source.literal("config/cache.py", "MambaDType")
    assert "align" in source.literal("config/cache.py", "MambaCacheMode")
    assert "mtp" in source.literal("config/speculative.py", "MTPModelTypes")
    assert "dflash" in source.literal("config/speculative.py", "DFlashModelTypes")
    assert "probabilistic" in source.literal("config/speculative.py", "DraftSampleMethod")
    metrics = source.fields("config/observability.py", "ObservabilityConfig")["per_request_spec_decode_metrics"]
    assert all(f"'{value}'" in metrics for value in values("REQ_METRICS"))
    backends = source.module("v1/attention/backends/registry.py")
    names = {n.id for n in ast.walk(backends) if isinstance(n, ast.Name)}
    assert values("ATTN") <= names
    for knob_name, path in (("REASONING_PARSER", "reasoning/__init__.py"), ("TOOL_PARSER", "tool_parsers/__init__.py")):
        words = {c.value for c in ast.walk(source.module(path)) if isinstance(c, ast.Constant)}
        assert values(knob_name) <= words
    levels = ast.unparse(source.module("tool_parsers/tool_strict_level.py"))
    assert all(f"'{value}'" in levels for value in values("TOOL_STRICT"))


def test_every_key_of_a_json_value_exists(source: Source, table: Table) -> None:
    classes = {
        "--speculative-config": ("config/speculative.py", "SpeculativeConfig"),
        "--compilation-config": ("config/compilation.py", "CompilationConfig"),
    }
    seen = set()
    for knob, _, output in outputs(table):
        if output.name in classes:
            seen.add(output.name)
            assert set(output.json) <= set(source.fields(*classes[output.name])), knob
    assert seen == set(classes)


def test_the_programs_exist(pristine: Path, table: Table) -> None:
    scripts = (pristine / "vllm-0.31.0.dist-info/entry_points.txt").read_text()
    assert table.programs["vllm"][0] == "vllm" and "\nvllm = " in scripts
    words = table.programs["vllm-cpu"]
    module = words[words.index("-m") + 1]
    assert 'if __name__ == "__main__":' in (pristine / (module.replace(".", "/") + ".py")).read_text()


def test_the_files_a_dead_engine_leaves(pristine: Path, table: Table) -> None:
    source = (pristine / "vllm/v1/kv_offload/cpu/shared_offload_region.py").read_text()
    for pattern in table.leftovers:
        assert f'f"{pattern.replace("*", "{engine_id}")}"' in source


def test_patches_that_are_carried_are_called_as_the_table_calls_them(table: Table, added: dict[str, set[str]]) -> None:
    assert table.security.guard in added, "without it no open bind is served"
