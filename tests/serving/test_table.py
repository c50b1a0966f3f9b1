"""The table that ships is valid, and a table that is not is refused at its line."""

from __future__ import annotations

import pytest
import yaml
from place import schema, shipped

from patchforge import resources
from patchforge.errors import InputError
from patchforge.serving.check import problems_of
from patchforge.serving.document import read_document
from patchforge.serving.table import build_table

TEXT = resources.template("modes.yaml")


def line_of(text: str, needle: str) -> int:
    return text[: text.index(needle)].count("\n") + 1


def check(text: str) -> list[tuple[int | None, str, str | None]]:
    found = problems_of(read_document(text.encode(), "m.yaml"), schema())
    assert all(problem.file == "m.yaml" and problem.reason == "modes" for problem in found)
    return [(problem.line, problem.message, problem.hint) for problem in found]


def test_the_table_that_ships_is_valid() -> None:
    assert check(TEXT) == []


def test_it_has_the_modes_of_the_contract_and_every_knob_once() -> None:
    table = shipped()
    assert [(m.letter, m.name, m.profile) for m in table.modes] == [
        ("A", "batch", "batch"),
        ("B", "single", "single"),
        ("C", "quoting", "single"),
        ("D", "long", "single"),
        ("E", "huge", "single"),
        ("F", "cpu", "cpu"),
    ]
    names = [knob.name for knob in table.knobs]
    assert len(names) == len(set(names))
    outputs = [(output.name, knob.name) for knob in table.knobs for output in knob.becomes]
    owners: dict[str, set[str]] = {}
    for output, knob in outputs:
        owners.setdefault(output, set()).add(knob)
    assert {output: knobs for output, knobs in owners.items() if len(knobs) > 1} == {}


@pytest.mark.parametrize(
    ("old", "new", "at", "message", "hint"),
    [
        ("    what: Port to", "    waht: Port to", "    waht: Port", "unknown key 'waht'", "did you mean 'what'?"),
        ("    type: integer\n    minimum: 1\n    maximum: 65535", "    type: whole\n    minimum: 1\n    maximum: 65535", "type: whole", "'whole' is not allowed", "boolean"),
        ("    letter: A\n", "", "  batch:\n", "'letter' is missing", None),
        ("conflicts:\n", "confilcts:\n", "confilcts:", "unknown key 'confilcts'", "did you mean 'conflicts'?"),
        ("flag: --port}", "flag: port}", "flag: port}", "'port' is not allowed", None),
        ("    values: [dflash2, mtp, \"off\"]", "    values: [dflash2, mtp, off]", "values: [dflash2, mtp, off]", "is not allowed here", None),
        ("{KV_MEM: {above: $gpu_bytes}}", "{KV_MEM: {abvoe: $gpu_bytes}}", "{KV_MEM: {abvoe", "unknown key 'abvoe'", "did you mean 'above'?"),
        ("    applies: {SPEC: mtp}", "    applies: {SPCE: mtp}", "applies: {SPCE", "no knob or fact 'SPCE'", "did you mean 'SPEC'?"),
        ("{KV_MEM: {above: $gpu_bytes}}", "{KV_MEM: {above: $gpu_byets}}", "{KV_MEM: {above: $gpu_byets", "no knob or fact 'gpu_byets'", "did you mean 'gpu_bytes'?"),
        ("model: $DRAFTER", "model: $DRAFT", "      - when: {SPEC: dflash2}", "no knob or fact 'DRAFT'", "did you mean 'DRAFTER'?"),
        ("    applies: {profile: single}\n    default: fast", "    applies: {SPEC: mtp}\n    default: fast", "applies: {SPEC: mtp}\n    default: fast", "looks at SPEC, which is decided later", "move"),
        ("    default: 18020", "    default: 99999", "default: 99999", "99999 is out of range", "1 to 65535"),
        ("choose: {CTX: huge}", "choose: {CTX: hge}", "choose: {CTX: hge}", "'hge' is not one of its values", "did you mean 'huge'?"),
        ("          bf16: auto\n", "", "      - flag: --kv-cache-dtype", "'bf16' is not both a value and in the map", None),
        ("    letter: B", "    letter: A", "    letter: A\n    profile: single", "the letter A is that of batch", None),
        ("    when: {CTX: long}\n", "", "  long:\n", "single is the profile's own mode already", None),
        ("    profile: cpu\n    for", "    profile: gpu\n    when: {CTX: fast}\n    for", "profile: gpu", "has no mode without 'when'", None),
        ("  host: HOST\n", "  host: HSOT\n", "  host: HSOT", "no knob or fact 'HSOT'", "did you mean 'HOST'?"),
        ("  vllm: [vllm, serve, $MODEL]", "  vllm: [vllm, serve, $MODLE]", "  vllm: [vllm, serve, $MODLE]", "no knob or fact 'MODLE'", "did you mean 'MODEL'?"),
    ],
)  # fmt: skip
def test_a_defect_is_named_at_its_line(old: str, new: str, at: str, message: str, hint: str | None) -> None:
    import re

    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    found = check(text)
    line = line_of(text, at)
    mine = [problem for problem in found if problem[0] == line and re.search(message, problem[1])]
    assert mine, found
    if hint is not None:
        assert hint in str(mine[0][2])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (b"", 1, "empty"),
        (b"a: 1\nb: [\n", 3, "not YAML"),
        (b"a: 1\nb: 2\na: 3\n", 3, "'a' stands here twice"),
        (b"a: &x [1]\nb: *x\n", 2, "an alias"),
        (b"a: 1\nb: !!python/object/apply:os.system ['true']\n", 2, "not YAML"),
        (b"? [1]\n: 2\n", 1, "a key that is not a word"),
        (b"a: \xff\n", None, "not YAML"),
        (b"a: 2026-13-45\n", None, "not YAML"),
    ],
)
def test_what_is_not_read_as_yaml(text: bytes, line: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_document(text, "m.yaml")
    assert (caught.value.file, caught.value.line) == ("m.yaml", line)


def test_deep_nesting_is_refused_and_no_crash() -> None:
    with pytest.raises(InputError):
        read_document(b"[" * 100_000, "m.yaml")


def test_lines_are_those_of_the_keys() -> None:
    document = read_document(TEXT.encode(), "m.yaml")
    for name in yaml.safe_load(TEXT)["knobs"]:
        assert document.line(("knobs", name)) == line_of(TEXT, f"\n  {name}:\n") + 1
    assert document.line(("knobs", "PORT", "nothing")) == document.line(("knobs", "PORT"))


def test_every_condition_is_reachable() -> None:
    """A conflict that could never hold would be a check that cannot fail; test_resolve makes each hold."""
    table = build_table(read_document(TEXT.encode(), "m.yaml"))
    assert len({rule.name for rule in table.conflicts}) == len(table.conflicts)
