"""A build appears whole or not at all, whenever it is stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from shop import Shop

from patchforge.cli import building
from patchforge.image import layout, native, staging

HERE = {
    "reading the base": (native, "scan"),
    "comparing with the wheel": (native, "prove"),
    "applying the series": (native, "patch_layer"),
    "packing patchforge": (native, "tool_layer"),
    "reading back": (native, "read_back"),
    "the files beside the image": (building, "write_image_files"),
    "flushing": (staging, "_settle"),
    "just before the end": (staging, "_put"),
}


def dying(original: Callable[..., Any], sign: int) -> Callable[..., Any]:
    def call(*words: Any, **more: Any) -> Any:
        out = original(*words, **more) if original.__name__ not in ("_put", "_settle") else None
        os.kill(os.getpid(), sign)
        return out

    return call


def in_child(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked child; return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(99)
    return os.waitpid(child, 0)[1]


@pytest.mark.parametrize("place", HERE)
def test_a_killed_build_leaves_nothing_that_looks_finished(
    shop: Shop, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, name = HERE[place]
    with monkeypatch.context() as patched:
        patched.setattr(module, name, dying(getattr(module, name), signal.SIGKILL))
        assert in_child(shop.build) == signal.SIGKILL
    assert not shop.out.exists()
    left = [p for p in shop.root.rglob("index.json") if ".partial" not in str(p)]
    assert left == []
    assert shop.build().status == 0
    assert [p.name for p in shop.out.parent.iterdir()] == [shop.out.name]


def test_a_build_killed_while_a_client_writes(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client has written a whole layout when we are killed, and has not come back."""
    assert shop.build("--out", str(tmp_path / "native")).status == 0
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    copied = f'for word; do case "$word" in type=oci,*) to="${{word#*dest=}}"; cp -r {tmp_path}/native/layout "${{to%%,*}}";; esac; done\n'
    client = tmp_path / "docker"
    for end, status in (("kill -9 $PPID\n", signal.SIGKILL), ("", 0)):
        client.write_text(f"#!/bin/sh\n{copied}{end}")
        client.chmod(0o755)
        work = partial(shop.run, "build-image", "--backend", "buildx", "--format", "json")
        if status:
            assert in_child(work) == status
            assert [p.name.endswith(".partial") for p in shop.out.parent.iterdir()] == [True]
        else:
            assert work().status == 0
            assert [p.name for p in shop.out.parent.iterdir()] == [shop.out.name]


def test_a_build_killed_between_two_blobs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    original, seen = layout.Writer.put, []

    def put(self: layout.Writer, data: bytes, media_type: str) -> layout.Blob:
        seen.append(1)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, data, media_type)

    with monkeypatch.context() as patched:
        patched.setattr(layout.Writer, "put", put)
        assert in_child(shop.build) == signal.SIGKILL
    assert not shop.out.exists()


def test_a_killed_rebuild_keeps_the_last_image_or_none(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.build().status == 0
    first = (shop.out / "image.digest").read_text()
    with monkeypatch.context() as patched:
        patched.setattr(staging, "_put", dying(staging._put, signal.SIGKILL))
        assert in_child(shop.build) == signal.SIGKILL
    assert (shop.out / "image.digest").read_text() == first


def test_a_disk_that_is_full(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: layout.Writer, *_: object) -> layout.Blob:
        raise OSError(28, "No space left on device", "blob")

    with monkeypatch.context() as patched:
        patched.setattr(layout.Writer, "put", full)
        done = shop.build()
    assert (done.status, done.json["problems"][0]["reason"]) == (1, "write")
    assert list(shop.out.parent.iterdir()) == []


def test_nothing_of_others_is_replaced(shop: Shop, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    done = shop.build("--out", str(place))
    assert (done.status, done.json["problems"][0]["reason"]) == (2, "exists")
    assert [p.name for p in place.iterdir()] == ["thesis.txt"]
    link = tmp_path / "link"
    link.symlink_to(place)
    assert shop.build("--out", str(link)).status == 2


def test_an_own_result_is_replaced(shop: Shop, tmp_path: Path) -> None:
    place = tmp_path / "result"
    assert shop.build("--out", str(place)).status == 0
    (place / "stray").write_text("x")
    assert shop.build("--out", str(place)).status == 0
    assert not (place / "stray").exists()
