"""The paths an Ollama client asks first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drive_api import make_app, scope_of, send

PATHS = ["/", "/api/status", "/api/experimental/model-recommendations", "/api/show"]
SERVED = ["Org/HQ-27B-int4", "plain", "deep/er/hq-1.5b"]


def bodies(model: Path) -> dict[str, bytes]:
    named = {
        "exact": "Org/HQ-27B-int4",
        "lower case": "org/hq-27b-int4",
        "last component": "hq-27b-int4",
        "colon": "hq:27b-int4",
        "tag cut short": "HQ:27b",
        "latest": "plain:latest",
        "another directory": "library/plain",
        "size with a point": "hq:1.5b",
        "adapter": "my-adapter",
        "no tag cut short": "hq",
        "tag cut inside a word": "hq:27",
        "part of a name": "plai",
        "path": str(model),
        "last component of the path": model.name,
        "unknown": "nobody",
        "only a colon": ":",
        "only latest": ":latest",
        "only a slash": "/",
        "wildcard": "%",
        "regular expression": ".*",
    }
    odd = {
        "no JSON": b"{",
        "not UTF-8": b"\xff\xfe",
        "empty": b"",
        "a list": b'["plain"]',
        "no name": b"{}",
        "a number": b'{"model": 7}',
        "null": b'{"model": null}',
        "deep": b"[" * 10_000,
        "long": b'{"model": "' + b"x" * 20_000 + b'"}',
    }
    by_model = {name: json.dumps({"model": value}).encode() for name, value in named.items()}
    return {**by_model, "by name": b'{"name": "plain", "verbose": true}', **odd}


def collect(work: Path) -> dict[str, Any]:
    """Everything about these paths, on a server with a key, asked without one."""
    from fastapi.testclient import TestClient

    model = work / "models" / "tiny-qwen"
    app = make_app(model, "--api-key", "sek", "--served-model-name", *SERVED)
    client = TestClient(app, raise_server_exceptions=False)
    shown = {}
    for name, body in bodies(model).items():
        if name == "adapter":
            app.state.openai_serving_models.lora_requests["my-adapter"] = object()
        answer = client.post("/api/show", content=body)
        app.state.openai_serving_models.lora_requests.clear()
        shown[name] = [answer.status_code, answer.text]
    gone = client.post("/api/show", content=bodies(model)["adapter"])
    return {
        "root": {
            f"{method} {path}": [answer.status_code, answer.text]
            for path in PATHS
            for method in ("GET", "HEAD", "POST", "DELETE")
            for answer in [client.request(method, path)]
        },
        "root shown": {**shown, "adapter gone": [gone.status_code, gone.text]},
        "root model": [str(model), model.name],
        "root neighbours": {
            path: send(app, scope_of("GET", path))[0]
            for path in ("//", "/api", "/api/", "/api/tags", "/api/showx", "/api//show", "/API/status", "/api/status/x")
        },
    }
