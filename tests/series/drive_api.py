"""The HTTP application without an engine: requests by every method, path and trick, and what answered."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock

KEYS = ["sek", "other key", "schlüssel"]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]
SERVED = ["hq", "second"]


def tiny_model(folder: Path) -> Path:
    """A model directory with a configuration and a tokenizer, and no weights."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config

    folder.mkdir(parents=True)
    raw = Tokenizer(models.BPE(unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "<|endoftext|>"])
    raw.train_from_iterator(["the quick brown fox jumps over the lazy dog " * 20], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", eos_token="<|endoftext|>")
    tokenizer.save_pretrained(folder)
    Qwen3Config(
        vocab_size=320,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=256,
        architectures=["Qwen3ForCausalLM"],
    ).save_pretrained(folder)
    return folder


def make_app(model: Path, *more: str) -> Any:
    """The server's application for ``model``, its engine a stand-in."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.launchers.api_server.app_state import init_app_state
    from vllm.entrypoints.launchers.app import build_app
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.renderers.registry import renderer_from_config
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.v1.engine.input_processor import InputProcessor

    words = ["--model", str(model), "--enforce-eager", "--served-model-name", *SERVED, *more]
    args = make_arg_parser(FlexibleArgumentParser()).parse_args(words)
    config = AsyncEngineArgs.from_cli_args(args).create_engine_config()
    engine = MagicMock()
    engine.vllm_config, engine.model_config = config, config.model_config
    engine.renderer = renderer_from_config(config)
    engine.input_processor = InputProcessor(config, engine.renderer)
    engine.errored, engine.is_running, engine.check_health = False, True, AsyncMock()
    engine.is_tracing_enabled = AsyncMock(return_value=False)
    engine.check_admission = MagicMock(return_value=None)
    app = build_app(args, ("generate",), config.model_config)
    asyncio.run(init_app_state(engine, app.state, args, ("generate",)))
    return app


class Asked(Exception):
    """Raised by the inner application: the request went through."""


def send(app: Any, scope: dict[str, Any]) -> tuple[int, bytes]:
    """Status and body of one ASGI request; 0 when the connection was closed or the application asked for more."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        kind = "websocket.connect" if scope["type"] == "websocket" else "http.request"
        return {"type": kind, "body": b"", "more_body": False}

    async def deliver(message: dict[str, Any]) -> None:
        sent.append(message)

    async def run() -> None:
        try:
            await asyncio.wait_for(app(scope, receive, deliver), 20)
        except Exception as error:
            sent.append({"type": "raised", "status": type(error).__name__})

    asyncio.run(run())
    status = next((m.get("status", m.get("code")) for m in sent if m["type"].endswith((".start", "raised"))), 0)
    if scope["type"] == "websocket":
        accepted = any(m["type"] == "websocket.accept" for m in sent)
        status = 101 if accepted else status or next((m.get("code", 0) for m in sent), 0)
    return status, b"".join(m.get("body", b"") for m in sent if m["type"].endswith(".body"))


def scope_of(method: str, path: str, headers: list[tuple[str, bytes]] | None = None, **more: Any) -> dict[str, Any]:
    """An ASGI scope as a server makes it: the path decoded once, the raw path as it came."""
    from urllib.parse import unquote

    return {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "headers": [(k.lower().encode(), v) for k, v in headers or []],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
        **more,
    }


def middleware_matrix() -> dict[str, Any]:
    """The middleware alone: which requests reach the application behind it."""
    from vllm.entrypoints.serve.middleware.authenticate import AuthenticationMiddleware

    passed: list[str] = []

    async def inner(scope: dict[str, Any], receive: Any, send: Any) -> None:
        passed.append(scope.get("path", scope["type"]))
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    app = AuthenticationMiddleware(inner, KEYS)

    def through(scope: dict[str, Any]) -> bool:
        passed.clear()
        send(app, scope)
        return bool(passed)

    bearer = [("Authorization", b"Bearer sek")]
    preflight = [("Origin", b"https://a.example"), ("Access-Control-Request-Method", b"POST")]
    paths = [
        *("/health", "/health/", "/ping", "/load", "/version", "/version/"),
        *("/", "", "//health", "/health//", "/HEALTH", "/./health", "/x/../health", "/%68ealth", "/%2568ealth"),
        *("/healthz", "/health/x", "/health%2f", "/health;x", "/health%00", "/v1/health", "/v1/models", "/V1/models"),
        *(
            "//v1/models",
            "/%76%31/models",
            "/tokenize",
            "/metrics",
            "/metrics/",
            "/invocations",
            "/openapi.json",
            "/docs",
        ),
    ]
    headers = {
        "none": [],
        "right": bearer,
        "second": [("Authorization", b"Bearer other key")],
        "lower": [("authorization", b"bearer sek")],
        "basic": [("Authorization", b"Basic sek")],
        "bare": [("Authorization", b"sek")],
        "empty": [("Authorization", b"Bearer ")],
        "blank": [("Authorization", b"")],
        "padded": [("Authorization", b"Bearer  sek")],
        "trailing": [("Authorization", b"Bearer sek ")],
        "wrong": [("Authorization", b"Bearer sekx")],
        "latin": [("Authorization", b"Bearer schl\xfcssel")],
        "utf8": [("Authorization", "Bearer schlüssel".encode())],
        "bytes": [("Authorization", b"Bearer \xff\xfe\x80")],
        "twice": [("Authorization", b"Bearer no"), ("Authorization", b"Bearer sek")],
    }
    return {
        "paths": {p: {m: through(scope_of(m, p)) for m in METHODS} for p in paths},
        "headers": {name: through(scope_of("POST", "/v1/completions", value)) for name, value in headers.items()},
        "preflight": through(scope_of("OPTIONS", "/v1/completions", preflight)),
        "half preflights": [through(scope_of("OPTIONS", "/tokenize", [one])) for one in preflight],
        "preflight of another method": through(scope_of("GET", "/tokenize", preflight)),
        "websocket": through(scope_of("GET", "/v1/realtime", type="websocket")),
        "websocket preflight": through(scope_of("OPTIONS", "/v1/realtime", preflight, type="websocket")),
        "websocket with key": through(scope_of("GET", "/v1/realtime", bearer, type="websocket")),
        "lifespan": through({"type": "lifespan"}),
        "root path": {
            f"{root} {path}": through(scope_of("GET", path, root_path=root))
            for root in ("/api", "/api/", "/health", "/v1")
            for path in (
                "/api/health",
                "/health",
                "/apihealth",
                "/api/api/health",
                "/api/v1/models",
                "/health/tokenize",
            )
        },
    }


def whole_app(app: Any) -> dict[str, Any]:
    """Every route of the built application, by every method, without a key."""
    routes = sorted({getattr(route, "path", "") for route in app.routes} | set(app.openapi()["paths"]))
    paths = [path for path in routes if path and "{" not in path]
    seen = {}
    for path in [*paths, "/nothing", "/metrics/x"]:
        for method in METHODS:
            seen[f"{method} {path}"] = send(app, scope_of(method, path))[0]
    fake = [("Origin", b"https://a.example"), ("Access-Control-Request-Method", b"GET")]
    return {
        "answers": seen,
        "keyed": send(app, scope_of("GET", "/v1/models", [("Authorization", b"Bearer sek")]))[0],
        "preflight body": send(app, scope_of("OPTIONS", "/metrics", fake))[1].decode(),
    }


def spelled(app: Any, paths: list[str]) -> dict[str, int]:
    """What each path gets without a key, by the method that does most."""
    return {path: send(app, scope_of("POST", path))[0] for path in paths}


def behind_a_prefix(model: Path) -> dict[str, Any]:
    """A server started with ``--root-path``, asked as a proxy that strips it would, and as one that does not."""
    app = make_app(model, "--root-path", "/api", "--api-key", "", "sek")
    paths = ("health", "metrics", "openapi.json", "v1/models", "invocations", "/health", "api/health")
    asked = [f"{prefix}/{path}" for prefix in ("", "/api") for path in paths]
    keys = {"right": b"Bearer sek", "empty": b"Bearer "}
    return {
        "without a key": {path: send(app, scope_of("GET", path))[0] for path in asked},
        "with": {
            name: send(app, scope_of("GET", "/api/v1/models", [("Authorization", key)]))[0]
            for name, key in keys.items()
        },
    }


def key_help() -> str:
    """What ``--help`` says of ``--api-key``: vLLM makes it from the text below the field."""
    from vllm.config.utils import get_attr_docs
    from vllm.entrypoints.launchers.cli_args import FrontendArgs

    return get_attr_docs(FrontendArgs)["api_key"]


def adapters(app: Any, model: Path) -> dict[str, bool]:
    """Which names an adapter may take."""
    from vllm.entrypoints.serve.lora.protocol import LoadLoRAAdapterRequest

    models = app.state.openai_serving_models

    def free(name: str) -> bool:
        request = LoadLoRAAdapterRequest(lora_name=name, lora_path="/adapter")
        return asyncio.run(models._check_load_lora_adapter_request(request)) is None

    return {key: free(name) for key, name in {"served": "hq", "basename": model.name, "new": "adapter"}.items()}


def post(app: Any, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """POST JSON with the key."""
    from fastapi.testclient import TestClient

    client = TestClient(app, raise_server_exceptions=False)
    answer = client.post(path, json=body, headers={"Authorization": "Bearer sek"})
    try:
        return answer.status_code, answer.json()
    except ValueError:
        return answer.status_code, answer.text


def names(app: Any, model: Path) -> dict[str, Any]:
    """What each model name gets."""
    asked = {
        "served": "hq",
        "second": "second",
        "path": str(model),
        "path/": f"{model}/",
        "basename": model.name,
        "part": model.name[:-1],
        "case": model.name.upper(),
        "parent": model.parent.name,
        "slash": "/",
        "unknown": "nobody",
    }
    return {key: post(app, "/tokenize", {"model": name, "prompt": "the fox"}) for key, name in asked.items()}


def registry() -> dict[str, bool]:
    """The registry on paths a test cannot make real."""
    from vllm.entrypoints.openai.models.protocol import BaseModelPath
    from vllm.entrypoints.openai.models.serving import OpenAIModelRegistry

    def known(path: str, name: str) -> bool:
        return OpenAIModelRegistry(MagicMock(), [BaseModelPath(name="s", model_path=path)]).is_base_model(name)

    cases = [
        *(("Qwen/Qwen3-27B", n) for n in ("Qwen/Qwen3-27B", "Qwen3-27B", "Qwen", "wen3-27B", "Qwen/", "", "qwen3-27b")),
        *(("/m/q/", n) for n in ("/m/q/", "/m/q", "q", "m", "/", "m/q", "")),
        *(("plain", n) for n in ("plain", "plain/", "s", "t")),
        *(("/", n) for n in ("/", "")),
    ]
    return {f"{path} as {name}": known(path, name) for path, name in cases}


def collect(work: Path) -> dict[str, Any]:
    """Everything about the application."""
    model = tiny_model(work / "models" / "tiny-qwen")
    app = make_app(model, "--api-key", *KEYS[:2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        document = app.openapi()
    operations = [o["operationId"] for item in document["paths"].values() for o in item.values() if "operationId" in o]
    open_app = make_app(model)
    with_info = make_app(model, "--enable-tokenizer-info-endpoint", "--api-key", "sek")
    return {
        "middleware": middleware_matrix(),
        "app": whole_app(app),
        "spelled": spelled(
            app,
            [
                *("/invocations", "//invocations", "/Invocations", "/%69nvocations", "/health/../invocations"),
                *("/health/%2e%2e/invocations", "/health%2f..%2finvocations", "/invocations/", "/health//"),
                *("/invocations%00", "/invocations;/health", "/health%3f/invocations", "/version%2finvocations"),
            ],
        ),
        "prefix": behind_a_prefix(model),
        "key help": key_help(),
        "adapters": adapters(app, model),
        "open": send(open_app, scope_of("GET", "/v1/models"))[0],
        "openapi warnings": [str(w.message) for w in caught if "peration" in str(w.message)],
        "operations": operations,
        "paths": sorted(document["paths"]),
        "tokenize": {
            path: post(app, path, {"model": "hq", "prompt": "the fox"}) for path in ("/tokenize", "/v1/tokenize")
        },
        "detokenize": {
            path: post(app, path, {"model": "hq", "tokens": [5, 6]}) for path in ("/detokenize", "/v1/detokenize")
        },
        "info paths": sorted(p for p in with_info.openapi()["paths"] if "tokenizer_info" in p),
        "names": names(app, model),
        "registry": registry(),
    }
