"""Reads server commands with vLLM's own parser (the tree on PYTHONPATH): ``parse_commands.py IN OUT``, both JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

SHOWN = (
    "host",
    "port",
    "api_key",
    "max_model_len",
    "max_num_seqs",
    "kv_cache_dtype",
    "enable_prefix_caching",
    "async_scheduling",
    "speculative_config",
    "tool_strict_level",
    "default_chat_template_kwargs",
    "limit_mm_per_prompt",
    "headless",
    "nnodes",
    "node_rank",
    "master_addr",
)


def parse(argv: list[str]) -> dict[str, Any]:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args = make_arg_parser(FlexibleArgumentParser()).parse_args(argv)
            validate_parsed_serve_args(args)
    except (SystemExit, TypeError, ValueError) as error:
        return {"error": f"{error} {said.getvalue()[-500:]}"}
    return {name: getattr(args, name) for name in SHOWN}


def main(given: Path, out: Path) -> None:
    out.write_text(json.dumps({name: parse(argv) for name, argv in json.loads(given.read_text()).items()}, default=str))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
