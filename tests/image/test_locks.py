"""``lock --image``: bases by digest, requirements with hashes; and what the locks are checked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.requirements import Requirement
from shop import Shop
from stubs import Layout, folder, tar_of

from patchforge.errors import InputError
from patchforge.image import resolving, tool
from patchforge.image.requirements import parse_requirements

UV = """#!/bin/sh
printf '%s\\n' "$@" > {seen}
env >> {seen}
while [ "$1" != --output-file ]; do shift; done
cp {answer} "$2"
"""


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in uv's place that answers with the file ``answer`` beside it and notes what it was asked."""
    place = tmp_path / "uv"
    place.mkdir()
    program = place / "uv"
    program.write_text(UV.format(seen=place / "seen", answer=place / "answer"))
    program.chmod(0o755)
    monkeypatch.setattr(resolving, "_program", lambda _: str(program))
    return place


def body(path: Path) -> str:
    return path.read_text().split("\n", 3)[3]


def test_a_current_lock_is_left_alone(shop: Shop, uv: Path) -> None:
    before = {p: p.read_bytes() for p in (shop.demo.series / "image").iterdir()}
    done = shop.run("lock", "--image", "--format", "json")
    assert (done.status, done.json["outcome"]) == (0, "current")
    assert {p: p.read_bytes() for p in (shop.demo.series / "image").iterdir()} == before
    assert not (uv / "seen").exists()
    assert shop.run("lock", "--image", "--check").status == 0


def test_a_stale_lock_is_found_and_written(shop: Shop, uv: Path) -> None:
    path = shop.demo.series / "image/default.txt"
    (uv / "answer").write_text(body(path))
    shop.edit_pin('python = "3.12"', 'python = "3.12.1"\nrequire = ["dep==2.0"]')
    check = shop.run("lock", "--image", "--check", "--format", "json")
    assert (check.status, check.json["outcome"]) == (1, "stale")
    assert {f["result"] for f in check.json["files"]} == {"stale", "current"}
    done = shop.run("lock", "--image", "--format", "json")
    assert done.status == 0, done.out
    assert shop.run("lock", "--image", "--check").status == 0
    asked = (uv / "seen").read_text().split("\n")
    assert "--generate-hashes" in asked
    assert asked[asked.index("--python-version") + 1] == "3.12"
    assert asked[asked.index("--python-platform") + 1] == "x86_64-manylinux_2_28"


def test_what_is_left_out_is_said_to_uv_and_part_of_the_inputs(shop: Shop, uv: Path) -> None:
    (uv / "answer").write_text(body(shop.demo.series / "image/default.txt"))
    shop.edit_pin('python = "3.12"', 'python = "3.12"\nomit = ["dep", "other-dep"]')
    assert shop.run("lock", "--image", "--check").status == 1
    assert shop.run("lock", "--image").status == 0
    asked = (uv / "seen").read_text().split("\n")
    assert [asked[n + 1] for n, word in enumerate(asked) if word == "--no-emit-package"] == ["dep", "other-dep"]
    assert ": demo==1.0, without dep, other-dep\n" in (shop.demo.series / "image/default.txt").read_text()
    assert shop.run("lock", "--image", "--check").status == 0
    shop.edit_pin('"other-dep"', '"--index-url"')
    assert shop.run("lock", "--image", "--check", "--format", "json").json["problems"][0]["reason"] == "pin"


def test_a_lock_without_the_pinned_wheel_is_not_written(shop: Shop, uv: Path) -> None:
    path = shop.demo.series / "image/default.txt"
    before = path.read_bytes()
    (uv / "answer").write_text(f"demo==1.0 \\\n    --hash=sha256:{'d' * 64}\n")
    done = shop.run("lock", "--image", "--refresh", "--format", "json")
    assert (done.status, done.json["problems"][0]["reason"]) == (1, "wheel-hash")
    assert path.read_bytes() == before


def test_uv_is_told_where_pip_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    conf = tmp_path / "pip.conf"
    conf.write_text(
        "[global]\nindex-url = https://me:secret@a.example/simple\nextra-index-url =\n    https://b.example\n    https://c.example\nfind-links = /w\ncert = /conf.pem\n"
    )
    environment = {"PIP_CONFIG_FILE": str(conf), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    found = resolving.pip_places(environment)
    assert found["UV_DEFAULT_INDEX"] == "https://me:secret@a.example/simple"
    assert {"https://b.example", "https://c.example"} <= set(found["UV_INDEX"].split())
    assert "/w" in found["UV_FIND_LINKS"].split(",")
    assert "UV_DEFAULT_INDEX" not in resolving.pip_places({**environment, "UV_DEFAULT_INDEX": "x"})
    assert found["SSL_CERT_FILE"] == "/conf.pem" and found["UV_SYSTEM_CERTS"] == "true"
    assert resolving.pip_places({**environment, "PIP_CERT": "/own.pem"})["SSL_CERT_FILE"] == "/own.pem"


def test_own_requirements_are_spelled_alike_by_a_checkout_and_an_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, wheel = tool.requirements(), tool.make_wheel()
    # As an installer writes them: clauses sorted, extras beside them.
    needs = [str(Requirement(need)) for need in reversed(checkout)] + ['hypothesis>=6; extra == "test"']
    assert any(">=0.28" in need and "<0.29" in need for need in needs)
    monkeypatch.setattr(tool, "_project", lambda: None)
    monkeypatch.setattr("importlib.metadata.requires", lambda name: needs)
    assert (tool.requirements(), tool.make_wheel()) == (checkout, wheel)
    assert tool.normalized("typer >=0.28, <0.29") == tool.normalized("typer<0.29,>=0.28")


def test_what_uv_says_is_shown_without_addresses(shop: Shop, uv: Path) -> None:
    (uv / "uv").write_text("#!/bin/sh\necho 'cannot reach https://me:secret@a.example/simple/demo' >&2\nexit 1\n")
    done = shop.run("lock", "--image", "--refresh", "--format", "json")
    (problem,) = done.json["problems"]
    assert problem["reason"] == "lock-tool"
    assert "cannot reach" in problem["message"]
    assert "secret" not in done.out
    assert "a.example" not in done.out


def test_a_layout_is_pinned_and_every_other_byte_kept(shop: Shop, uv: Path, tmp_path: Path) -> None:
    digest = Layout(tmp_path / "Other").image([tar_of([folder("etc")])])
    before = shop.pin.read_text()
    old = before.partition('base = "')[2].partition('"')[0]
    done = shop.run("lock", "--image", "--flavor", "default", "--base", str(tmp_path / "Other"))
    assert done.status == 0, done.err
    assert shop.pin.read_text() == before.replace(old, f"localhost/other@{digest}")
    assert "  # by digest" in shop.pin.read_text()


def test_a_digest_is_taken_as_it_is(shop: Shop, uv: Path) -> None:
    wanted = f"python:3.12@sha256:{'e' * 64}"
    assert shop.run("lock", "--image", "--flavor", "default", "--base", wanted).status == 0
    assert wanted in shop.pin.read_text()
    before = shop.pin.read_bytes()
    assert shop.run("lock", "--image", "--flavor", "default", "--base", "python@sha256:12").status == 2
    assert shop.pin.read_bytes() == before


@pytest.mark.parametrize(
    "words", [("--base", "x"), ("--image", "--base", "x"), ("--image", "--tree", "x"), ("--refresh",)]
)
def test_usage(shop: Shop, words: tuple[str, ...]) -> None:
    done = shop.run("lock", *words, "--format", "json")
    assert (done.status, done.json["problems"][0]["reason"]) == (2, "usage")


def test_a_base_without_digest_is_said(shop: Shop, uv: Path) -> None:
    text = shop.pin.read_text()
    start = text.index("@sha256:")
    shop.pin.write_text(text[:start] + text[start + 72 :])
    done = shop.run("lock", "--image", "--check", "--format", "json")
    assert done.json["problems"][0]["reason"] == "base-unpinned"


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("a==1\n", "lock-unhashed", 1),
        (f"# x\n\na>=1 --hash=sha256:{'a' * 64}\n", "lock-unhashed", 3),
        (f"a==1 --hash=md5:{'a' * 32}\n", "lock-unhashed", 1),
        (f"a==1 --hash=sha256:{'a' * 63}\n", "lock-unhashed", 1),
        ("--extra-index-url https://x\n", "lock-index", 1),
        ("-f wheels\n", "lock-index", 1),
        (f"a==1 --hash=sha256:{'a' * 64}\nA==1 --hash=sha256:{'a' * 64}\n", "lock-unhashed", 2),
    ],
)
def test_lines_that_are_refused(text: str, reason: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        parse_requirements(text, "lock.txt", "")
    assert (caught.value.reason, caught.value.line) == (reason, line)


def test_continuations_comments_and_extras() -> None:
    text = f"# c\na[x]==1.0+cpu \\\n    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}  # why\n    # via b\n"
    found = parse_requirements(text, "lock.txt", "")
    assert found["a"].version == "1.0+cpu"
    assert found["a"].hashes == ("a" * 64, "b" * 64)
