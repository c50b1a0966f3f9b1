"""What a bare series says of its patches goes out with them: mail headers, Debian's fields, or plain words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from workspace import USER

from patchforge import cli
from patchforge.exchange.described import described

DIFF = b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-%d\n+%d\n"
MAIL = """\
From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001
From: =?UTF-8?q?J=C3=BCrgen?= <j@example.org>
Date: Tue, 2 Jan 2024 10:00:00 +0100
Subject: [PATCH 3/7] f: one becomes
 two
Content-Type: text/plain; charset=UTF-8

The body, für alle.

Signed-off-by: J <j@example.org>
---
 f | 2 +-
 1 file changed, 1 insertion(+), 1 deletion(-)

""".encode()
DEBIAN = """\
Description: make it bigger
 Because small is
 not enough.
 .
 More words.
Author: Jane Döe <jane@example.org>, Joe <joe@example.org>
Origin: vendor
Bug-Debian: https://bugs.example.org/1
Last-Update: 2024-01-01
---
This patch header follows DEP-3.
""".encode()
SUBJECT = b"""\
From: Jane <jane@example.org>
Date: not a date
Subject: small again
Forwarded: not-needed

It was too big.
"""
NAMELESS = b"Author: somebody\nOrigin: here\n\nFree text\nof two lines.\n"
WORDS = b"Note that this is no header,\nbut a sentence: with a colon.\n\n---\n f | 2 +-\n"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env={**os.environ, **USER}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_author_date_subject_and_text_go_out_with_the_patch(tmp_path: Path) -> None:
    quilt, tree = tmp_path / "quilt", tmp_path / "tree"
    quilt.mkdir()
    tree.mkdir()
    texts = [MAIL, DEBIAN, SUBJECT, NAMELESS, WORDS, b""]
    for number, text in enumerate(texts, 1):
        (quilt / f"{number}.patch").write_bytes(text + DIFF % (number, number + 1))
    (quilt / "series").write_text("".join(f"{number}.patch\n" for number in range(1, len(texts) + 1)))
    (tree / "f").write_text("1\n")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "start")
    assert cli.run(["export", "--quilt", str(quilt), "--mbox", str(tmp_path / "box")]) == 0
    git(tree, "am", "-q", str(tmp_path / "box"))
    said = git(tree, "log", "-6", "--reverse", "--format=%an <%ae> %ad%n%B%x01").split("\x01\n")
    new_year = "Thu Jan 1 00:00:00 2026 +0000"
    assert [text.rstrip("\n") for text in said if text] == [
        "J\u00fcrgen <j@example.org> Tue Jan 2 10:00:00 2024 +0100\nf: one becomes two\n\n"
        "The body, f\u00fcr alle.\n\nSigned-off-by: J <j@example.org>",
        f"Jane D\u00f6e <jane@example.org> {new_year}\nmake it bigger\n\nBecause small is\nnot enough.\n\nMore words.\n\n"
        "Origin: vendor\nBug-Debian: https://bugs.example.org/1\nLast-Update: 2024-01-01\n"
        "Co-authored-by: Joe <joe@example.org>",
        f"Jane <jane@example.org> {new_year}\nsmall again\n\nIt was too big.\n\nForwarded: not-needed",
        f"somebody <patchforge@invalid> {new_year}\n4.patch\n\nFree text\nof two lines.\n\nOrigin: here",
        f"patchforge <patchforge@invalid> {new_year}\n5.patch\n\n"
        "Note that this is no header,\nbut a sentence: with a colon.",
        f"patchforge <patchforge@invalid> {new_year}\n6.patch",
    ]


@pytest.mark.parametrize("value", [b"A\n <a@example.org>\n X-Evil: 1", b"=?utf-8?q?A=0AX-Evil:_1?= <a@example.org>"])
def test_no_author_makes_a_header_of_its_own(tmp_path: Path, value: bytes) -> None:
    (tmp_path / "1.patch").write_bytes(b"From: " + value + b"\nSubject: x\n\n" + DIFF % (1, 2))
    (tmp_path / "series").write_text("1.patch\n")
    assert cli.run(["export", "--quilt", str(tmp_path), "--mbox", str(tmp_path / "box")]) == 0
    assert b"\nX-Evil" not in (tmp_path / "box").read_bytes()


@pytest.mark.parametrize("text", [b"\n\n", b": x\n", b"Description:\n", b"From: \nSubject: \n", b"\xff\xfe\n"])
def test_little_is_no_error(text: bytes) -> None:
    assert described(text).subject == ""
