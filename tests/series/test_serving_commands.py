"""vLLM's own parser takes the command of every mode, and reads in it what was meant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from place import BIG, KEY, everything, installed, shipped

from conftest import ENVIRONMENT, HERE, tree
from patchforge.serving.resolve import resolve

CASES: dict[str, tuple[str, dict[str, str]]] = {
    "batch": ("batch", {}),
    "single": ("single", {}),
    "quoting": ("quoting", {}),
    "long": ("long", {}),
    "long dflash2": ("long", {"SPEC": "dflash2"}),
    "huge": ("huge", {}),
    "huge int4": ("huge", {"KV": "int4pth", "SPEC": "off"}),
    "huge mtp": ("huge", {"SPEC": "mtp"}),
    "cpu": ("cpu", {}),
    "seen": ("single", {"VISION": "1", "ENABLE_THINKING": "0", "REQ_METRICS": "detailed", "DTYPE": "bfloat16"}),
    "spread": ("single", {"TP": "2", "KV_OFFLOAD_GB": "8", "TOOL_PARSER": "off", "REASONING_PARSER": "off"}),
    "leader": ("batch", {"NODES": "2", "LEADER": "10.0.0.1", "PP": "2"}),
    "worker": ("batch", {"NODES": "2", "LEADER": "10.0.0.1", "PP": "2", "NODE_RANK": "1"}),
    "open": ("cpu", {"HOST": "0.0.0.0", "VLLM_API_KEY": KEY}),
}
# What EXTRA_ARGS refuses, given to the parser all the same: each shows why.
REFUSED = {
    "--api-k=stolen": ("api_key", ["stolen"]),
    "--api_key=stolen": ("api_key", ["stolen"]),
    "--hos=0.0.0.0": ("host", "0.0.0.0"),
    "--por=1": ("port", 1),
}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    work = tmp_path_factory.mktemp("commands")
    table = shipped()
    commands = {}
    for name, (mode, env) in CASES.items():
        argv = resolve(table, mode, env, [], installed(everything(table)), BIG).argv
        words = ["--model", *argv[2:]]
        # The type of a cache that a patch brings is not a choice of this tree's parser.
        commands[name] = ["fp8" if word == "kvarn_k4v2_g128" else word for word in words]
    for word in REFUSED:
        commands[word] = ["--model", "m", "--host", "127.0.0.1", word]
    (work / "in.json").write_text(json.dumps(commands))
    env = {**os.environ, **ENVIRONMENT, "PYTHONPATH": f"{tree('patched')}:{HERE / 'site'}", "XDG_CACHE_HOME": str(work)}
    done = subprocess.run(
        [sys.executable, str(HERE / "parse_commands.py"), str(work / "in.json"), str(work / "out.json")],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((work / "out.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_every_command_is_taken(parsed: dict[str, Any], name: str) -> None:
    assert "error" not in parsed[name], parsed[name]
    assert parsed[name]["api_key"] is None, "the key is not among the flags"
    assert parsed[name]["port"] == 18020


def test_what_was_meant_is_read(parsed: dict[str, Any]) -> None:
    assert parsed["batch"]["speculative_config"] is None and parsed["batch"]["enable_prefix_caching"] is False
    assert parsed["single"]["speculative_config"]["num_speculative_tokens"] == 7
    assert (parsed["single"]["async_scheduling"], parsed["quoting"]["async_scheduling"]) == (True, False)
    assert parsed["long"]["speculative_config"] == {"method": "mtp", "num_speculative_tokens": 3}
    assert parsed["long dflash2"]["kv_cache_dtype"] == "int8_per_token_head"
    assert (parsed["huge int4"]["kv_cache_dtype"], parsed["huge int4"]["max_model_len"]) == (
        "int4_per_token_head",
        245760,
    )
    assert parsed["seen"]["default_chat_template_kwargs"] == {"enable_thinking": False}
    assert parsed["seen"]["limit_mm_per_prompt"] == {"image": 1, "video": 0}
    assert (parsed["leader"]["headless"], parsed["worker"]["headless"]) == (False, True)
    assert (parsed["worker"]["nnodes"], parsed["worker"]["node_rank"], parsed["worker"]["master_addr"]) == (
        2,
        1,
        "10.0.0.1",
    )
    assert parsed["open"]["host"] == "0.0.0.0"


@pytest.mark.parametrize("word", REFUSED)
def test_why_beginnings_of_flags_are_refused(parsed: dict[str, Any], word: str) -> None:
    name, value = REFUSED[word]
    assert parsed[word][name] == value
