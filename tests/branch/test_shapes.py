"""Every shape in which an upstream change arrives, made by git and by mail programs, ends as the tree upstream has.

Each is imported into a project whose distribution is the release, completed as its report asks, and applied: the installed
package must then be, byte for byte and mode for mode, the package of the upstream commit.
"""

from __future__ import annotations

import base64
import email.mime.application
import email.mime.multipart
import email.mime.text
import email.policy
import quopri
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from demo import Demo
from upstream import Upstream, install, installed, make

MESSAGE = (
    "Totals count what is free (#321)\n\nA gift has no price, and the sum of prices broke on it.\n\n"
    "Co-authored-by: B \u00d6ne <b@example.org>\nChange-Id: I0123\nSigned-off-by: User <user@example.org>"
)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return make(tmp_path / "upstream")


def change(upstream: Upstream) -> None:
    """A change as most are: some lines of the package, its test beside it."""
    upstream.edit("demo/cart.py", b"sum(price for _, price", b"sum(price or 0 for _, price")
    upstream.edit("tests/test_cart.py", b"pass", b"assert True")


def mail(upstream: Upstream, *options: str, count: int = 1) -> bytes:
    return upstream.git("format-patch", f"-{count}", "--stdout", *options)


def a_mail(upstream: Upstream) -> bytes:
    """format-patch as it comes: stat, signature."""
    change(upstream)
    upstream.commit(MESSAGE)
    data = mail(upstream)
    assert b" | 2 +-\n" in data and b"\n-- \n2." in data
    return data


def a_mail_with_full_ids_and_little_context(upstream: Upstream) -> bytes:
    change(upstream)
    upstream.commit(MESSAGE)
    return mail(upstream, "--full-index", "-U1", "--no-stat", "--signature=")


def a_plain_diff(upstream: Upstream) -> bytes:
    change(upstream)
    data = upstream.git("diff")
    upstream.commit(MESSAGE)
    return data


def a_diff_of_two_directories(upstream: Upstream) -> bytes:
    """diff -ruN: time stamps, no git header; a new and a removed file."""
    old = upstream.folder.parent / "old"
    subprocess.run(["cp", "-r", str(upstream.folder), str(old)], check=True)
    change(upstream)
    upstream.write("demo/gift.py", b"FREE = 0\n")
    (upstream.folder / "demo/data/old name.txt").unlink()
    done = subprocess.run(
        ["diff", "-ruN", "-x", ".git", "old", "upstream"], cwd=old.parent, capture_output=True, check=False
    )
    upstream.commit(MESSAGE)
    return done.stdout


def a_printed_commit(upstream: Upstream) -> bytes:
    change(upstream)
    upstream.commit(MESSAGE)
    return upstream.git("show", "--stat", "--patch", "HEAD")


def several_commits_with_a_cover_letter(upstream: Upstream) -> bytes:
    change(upstream)
    upstream.commit(MESSAGE)
    upstream.write("README", b"A better shop.\n")
    upstream.commit("docs: say that it is better")
    upstream.edit("demo/cart.py", b"return not cart.lines", b"return len(cart.lines) == 0")
    upstream.commit("Ask for the length\n\nIt is clearer.")
    return mail(upstream, "--cover-letter", count=3)


def renames(upstream: Upstream) -> bytes:
    """One file moved as it is, one moved and edited."""
    upstream.git("mv", "demo/data/old name.txt", "demo/data/new name.txt")
    upstream.git("mv", "demo/data/menu.txt", "demo/menu.txt")
    upstream.edit("demo/menu.txt", b"dish 15\n", b"dish fifteen\n")
    upstream.commit(MESSAGE)
    data = mail(upstream, "-M")
    assert data.count(b"\nrename to ") == 2 and b"similarity index 100%" in data
    return data


def a_copy(upstream: Upstream) -> bytes:
    upstream.write("demo/data/second menu.txt", (upstream.folder / "demo/data/menu.txt").read_bytes() + b"dish 30\n")
    upstream.commit(MESSAGE)
    data = mail(upstream, "--find-copies-harder")
    assert b"\ncopy to " in data
    return data


def quoted_names(upstream: Upstream) -> bytes:
    upstream.edit("demo/data/caf\u00e9.txt", "deux caf\u00e9s".encode(), b"deux fois")
    upstream.write('demo/data/a "quoted" one.txt', b"x\n")
    upstream.commit(MESSAGE)
    data = mail(upstream)
    assert b'"a/demo/data/caf\\303\\251.txt"' in data and b'\\"quoted\\"' in data
    return data


def names_as_they_are(upstream: Upstream) -> bytes:
    """The same with core.quotePath off, which many have set."""
    upstream.edit("demo/data/caf\u00e9.txt", "deux caf\u00e9s".encode(), b"deux fois")
    upstream.edit("demo/data/old name.txt", b"row 5\n", b"row five\n")
    upstream.commit(MESSAGE)
    data = upstream.git("-c", "core.quotePath=false", "format-patch", "-1", "--stdout")
    assert " a/demo/data/caf\u00e9.txt ".encode() in data
    return data


def much_outside_the_package(upstream: Upstream) -> bytes:
    """Tests, documents, a link, a binary file: all of it outside, none of it in the way."""
    change(upstream)
    upstream.write("docs/n\u00e9w page.md", b"# New\n")
    upstream.write("logo.bin", b"\0\3")
    (upstream.folder / "link").symlink_to("README")
    upstream.git("mv", "README", "README.md")
    upstream.commit(MESSAGE)
    data = mail(upstream, "-M")
    assert b"GIT binary patch" in data and b"new file mode 120000" in data
    return data


def modes(upstream: Upstream) -> bytes:
    (upstream.folder / "demo/run.sh").chmod(0o755)
    upstream.write("demo/tool.sh", b"#!/bin/sh\n")
    (upstream.folder / "demo/tool.sh").chmod(0o755)
    upstream.commit(MESSAGE)
    data = mail(upstream)
    assert b"\nold mode 100644\nnew mode 100755\n" in data
    return data


def removed_and_empty_files(upstream: Upstream) -> bytes:
    (upstream.folder / "demo/data/old name.txt").unlink()
    upstream.write("demo/data/__init__.py", b"")
    upstream.commit(MESSAGE)
    return mail(upstream)


def no_newline_at_the_end(upstream: Upstream) -> bytes:
    upstream.edit("demo/data/menu.txt", b"dish 29\n", b"dish 29")
    upstream.commit(MESSAGE)
    data = mail(upstream)
    assert b"\\ No newline at end of file\n-- \n" in data
    return data


def a_file_with_crlf(upstream: Upstream) -> bytes:
    upstream.edit("demo/data/windows.txt", b"second", b"2nd")
    upstream.commit(MESSAGE)
    data = mail(upstream)
    assert b"-second\r\n+2nd\r\n" in data
    return data


def a_mail_saved_with_crlf(upstream: Upstream) -> bytes:
    """As a mail program stores it; the files have LF."""
    change(upstream)
    upstream.commit(MESSAGE)
    return b"Return-Path: <x@example.org>\r\n" + mail(upstream).partition(b"\n")[2].replace(b"\n", b"\r\n")


def a_diff_downloaded_with_crlf(upstream: Upstream) -> bytes:
    return a_plain_diff(upstream).replace(b"\n", b"\r\n")


def bytes_that_are_no_text(upstream: Upstream) -> bytes:
    """A mail in UTF-8 whose diff is of a Latin-1 file: the diff is bytes."""
    upstream.edit("demo/data/latin.txt", b"\xfcber", b"\xdcber")
    upstream.commit(MESSAGE)
    return mail(upstream)


def _encoded(data: bytes, name: str, encode: Callable[[bytes], bytes], charset: str = "UTF-8") -> bytes:
    """``data``, a mail, as it travels when a server encodes its body."""
    head, _, body = data.partition(b"\n\n")
    lines = [line for line in head.split(b"\n") if not line.startswith((b"Content-", b"MIME-"))]
    lines += [b"MIME-Version: 1.0", f"Content-Type: text/plain; charset={charset}".encode()]
    return b"\n".join([*lines, f"Content-Transfer-Encoding: {name}".encode(), b"", b""]) + encode(body)


def _quoted_lines(body: bytes) -> bytes:
    """What stands in a line encoded, a CR at its end too."""
    lines = [(quopri.encodestring(line.rstrip(b"\r")), line.endswith(b"\r")) for line in body.split(b"\n")]
    return b"\n".join(line + b"=0D" * carriage for line, carriage in lines)


def quoted_printable(upstream: Upstream) -> bytes:
    upstream.edit("demo/data/windows.txt", b"second", b"2nd")
    upstream.edit("demo/data/caf\u00e9.txt", b"trois", b"a=b " + b"x" * 200)
    upstream.commit(MESSAGE)
    return _encoded(mail(upstream), "quoted-printable", _quoted_lines)


def base64_with_the_line_ends_of_mime(upstream: Upstream) -> bytes:
    change(upstream)
    upstream.commit(MESSAGE)
    return _encoded(mail(upstream), "base64", lambda body: base64.encodebytes(body.replace(b"\n", b"\r\n")))


def latin_1(upstream: Upstream) -> bytes:
    """The text in Latin-1, as it says; the diff, as git leaves it, in the bytes of the file."""
    upstream.edit("demo/data/latin.txt", b"alles", b"nichts")
    upstream.commit(MESSAGE, GIT_AUTHOR_NAME="J\u00fcrgen")
    data = mail(upstream)
    text, mark, diff = data.partition(b"\n---\n")
    head, _, body = text.partition(b"\n\n")
    body = body.decode().encode("latin-1")
    return _encoded(head + b"\n\n" + body + mark + diff, "8bit", lambda body: body, "ISO-8859-1")


def an_attachment(upstream: Upstream) -> bytes:
    """A mail program's: text and HTML alternatives, and the diff attached."""
    change(upstream)
    diff = upstream.git("diff")
    upstream.commit(MESSAGE)
    outer = email.mime.multipart.MIMEMultipart()
    outer["From"], outer["Subject"] = "User <user@example.org>", "Re: [dev] [PATCH v2] " + MESSAGE.partition("\n")[0]
    inner = email.mime.multipart.MIMEMultipart("alternative")
    inner.attach(email.mime.text.MIMEText(MESSAGE.partition("\n\n")[2] + "\n", "plain", "utf-8"))
    inner.attach(email.mime.text.MIMEText("<p>Hello</p><pre>\n" + diff.decode() + "</pre>", "html", "utf-8"))
    outer.attach(inner)
    outer.attach(email.mime.application.MIMEApplication(diff, "x-patch", Name="fix.patch"))
    return outer.as_bytes(policy=email.policy.SMTP)


def attached_by_git(upstream: Upstream) -> bytes:
    change(upstream)
    upstream.commit(MESSAGE)
    return mail(upstream, "--attach")


def sent_for_somebody_else(upstream: Upstream) -> bytes:
    """The author is in the text, below scissors; the sender is another."""
    change(upstream)
    upstream.commit(MESSAGE)
    head, _, body = mail(upstream).partition(b"\n\n")
    head = head.replace(b"From: User <user@example.org>", b"From: Sender <sender@example.org>")
    own = b"Hello,\n\nplease take this:\n\n-- >8 --\nFrom: User <user@example.org>\n\n"
    return head + b"\n\n" + own + body


SHAPES = [
    a_mail,
    a_mail_with_full_ids_and_little_context,
    a_plain_diff,
    a_diff_of_two_directories,
    a_printed_commit,
    several_commits_with_a_cover_letter,
    renames,
    a_copy,
    quoted_names,
    names_as_they_are,
    much_outside_the_package,
    modes,
    removed_and_empty_files,
    no_newline_at_the_end,
    a_file_with_crlf,
    a_mail_saved_with_crlf,
    a_diff_downloaded_with_crlf,
    bytes_that_are_no_text,
    quoted_printable,
    base64_with_the_line_ends_of_mime,
    latin_1,
    an_attachment,
    attached_by_git,
    sent_for_somebody_else,
]
WITHOUT_MESSAGE = {"a_plain_diff", "a_diff_of_two_directories", "a_diff_downloaded_with_crlf"}


def complete(demo: Demo) -> list[str]:
    """Fill in what the import left empty, as a person does, and list the patches; returns their names."""
    names = []
    for path in sorted(demo.patches.glob("*.patch")):
        text = path.read_bytes()
        filled = {b"Kind": b"fix", b"What": b"what a person writes", b"Upstream": b"none", b"Retires-when": b"never"}
        for key, value in filled.items():
            text = text.replace(b"\n" + key + b":\n", b"\n" + key + b": " + value + b"\n", 1)
        text = text.replace(b"Kind: backport\n", b"Kind: fix\n").replace(b"Why this patch is here.", b"It is needed.")
        path.write_bytes(text)
        names.append(path.stem)
    return names


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_shape_ends_as_the_tree_upstream_has(
    demo: Demo, upstream: Upstream, tmp_path: Path, shape: Callable[[Upstream], bytes]
) -> None:
    install(demo, upstream)
    file = tmp_path / "change.patch"
    file.write_bytes(shape(upstream))
    done = demo.run("import", "--format", "json", str(file))
    assert done.status == 0, done.out
    patches = done.json["patches"]
    if shape is several_commits_with_a_cover_letter:
        assert [p["name"] for p in patches] == ["pr321-totals-count-what-is-free", "ask-for-the-length"]
        assert patches[0]["passed_over"] == ["*** SUBJECT HERE ***"]
        assert patches[1]["passed_over"] == ["docs: say that it is better"]
    else:
        assert len(patches) == 1
    first = (demo.patches / f"{patches[0]['name']}.patch").read_text(errors="surrogateescape")
    if shape.__name__ in WITHOUT_MESSAGE:
        assert {"Kind", "What", "Upstream", "Retires-when", "the text that says why"} == set(patches[0]["missing"])
    else:
        assert patches[0]["name"] == "pr321-totals-count-what-is-free"
        author = "J\u00fcrgen" if shape is latin_1 else "User"
        assert first.startswith("A gift has no price, and the sum of prices broke on it.\n\nKind: backport\n")
        assert f"\nAuthor: {author} <user@example.org>\nCo-authored-by: B \u00d6ne <b@example.org>\n" in first
        assert "\nSigned-off-by: User <user@example.org>\n\ndiff --git " in first
        assert "Change-Id" not in first
        assert "Hello" not in first
    names = complete(demo)
    (demo.series / "series").write_text("".join(f"{p['name']}.patch\n" for p in patches))
    assert len(names) == len(patches)
    assert demo.run("lock").status == 0
    lint = demo.run("lint", tree=False)
    assert lint.status == 0, lint.err
    applied = demo.run("apply")
    assert applied.status == 0, applied.err
    assert installed(demo) == upstream.package()
    assert demo.run("revert").status == 0
    assert installed(demo) == upstream.package("HEAD~3" if len(patches) > 1 else "HEAD~1")


def test_a_package_below_src(demo: Demo, upstream: Upstream, tmp_path: Path) -> None:
    install(demo, upstream)
    (upstream.folder / "src").mkdir()
    upstream.git("mv", "demo", "src/demo")
    upstream.commit("Move")
    upstream.edit("src/demo/cart.py", b"self.lines = []", b"self.lines = list()")
    upstream.commit("Lists are lists")
    file = tmp_path / "x.patch"
    file.write_bytes(mail(upstream))
    refused = demo.run("import", str(file))
    assert refused.status == 2
    assert "--prefix names another directory" in refused.err
    for prefix in ("src/demo", "src/demo/"):
        done = demo.run("import", "--prefix", prefix, str(file))
        assert done.status == 0, done.err
        (patch,) = demo.patches.glob("*.patch")
        assert b"diff --git a/cart.py b/cart.py\n" in patch.read_bytes()
        patch.unlink()


def test_paths_relative_to_the_package(demo: Demo, upstream: Upstream, tmp_path: Path) -> None:
    install(demo, upstream)
    change(upstream)
    file = tmp_path / "x.diff"
    file.write_bytes(upstream.git("diff", "--relative=demo"))
    assert demo.run("import", str(file)).status == 2
    done = demo.run("import", "--prefix", ".", str(file))
    assert done.status == 0, done.err


def binary_in_a_mail(upstream: Upstream) -> bytes:
    upstream.write("demo/logo.png", b"\x89PNG\0\1")
    upstream.commit(MESSAGE)
    return mail(upstream)


def binary_in_a_diff(upstream: Upstream) -> bytes:
    upstream.write("demo/logo.png", b"\x89PNG\0\1")
    upstream.git("add", "-A")
    return upstream.git("diff", "--cached")


def binary_between_directories(upstream: Upstream) -> bytes:
    subprocess.run(["cp", "-r", str(upstream.folder), str(upstream.folder.parent / "old")], check=True)
    change(upstream)
    upstream.write("demo/logo.png", b"\x89PNG\0\1")
    words = ["diff", "-ruN", "-x", ".git", "old", "upstream"]
    return subprocess.run(words, cwd=upstream.folder.parent, capture_output=True, check=False).stdout


def moved_out_of_the_package(upstream: Upstream) -> bytes:
    upstream.git("mv", "demo/data/menu.txt", "menu.txt")
    upstream.commit(MESSAGE)
    return mail(upstream, "-M")


def a_merge_as_git_shows_it(upstream: Upstream) -> bytes:
    upstream.git("checkout", "-q", "-b", "side")
    upstream.edit("demo/data/menu.txt", b"dish 15\n", b"dish fifteen\n")
    upstream.commit("Side")
    upstream.git("checkout", "-q", "-")
    upstream.edit("demo/data/menu.txt", b"dish 15\n", b"dish XV\n")
    upstream.commit("Main")
    with pytest.raises(AssertionError):
        upstream.git("merge", "-q", "side")
    upstream.write("demo/data/menu.txt", b"dish\n")
    upstream.commit("Merged")
    return upstream.git("show", "--format=", "HEAD")


def cut_off(upstream: Upstream) -> bytes:
    data = mail_with_two_files(upstream)
    return data[: data.index(b"diff --git a/tests") + 20] + b"\n"


def cut_off_in_a_hunk(upstream: Upstream) -> bytes:
    data = a_plain_diff(upstream)
    return data[: data.index(b"+        return sum")]


def mail_with_two_files(upstream: Upstream) -> bytes:
    change(upstream)
    upstream.commit(MESSAGE)
    return mail(upstream)


@pytest.mark.parametrize(
    ("shape", "line", "message"),
    [
        (binary_in_a_mail, b"GIT binary patch", "a binary change"),
        (binary_in_a_diff, b"", "demo/logo.png is binary"),
        (binary_between_directories, b"", "demo/logo.png is binary"),
        (moved_out_of_the_package, b"diff --git", "git format-patch --no-renames"),
        (a_merge_as_git_shows_it, b"diff --cc", "combined"),
        (cut_off, b"", "ends in the middle of a diff"),
        (cut_off_in_a_hunk, b"", "of line 5 ends here"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_what_cannot_be_taken_in_is_named(
    demo: Demo, upstream: Upstream, tmp_path: Path, shape: Callable[[Upstream], bytes], line: bytes, message: str
) -> None:
    install(demo, upstream)
    file = tmp_path / "change.patch"
    file.write_bytes(shape(upstream))
    before = {p: p.read_bytes() for p in demo.root.rglob("*") if p.is_file()}
    done = demo.run("import", str(file))
    assert done.status == 2, done.out
    assert message in done.err
    if line:
        lines = file.read_bytes().split(b"\n")
        number = next(n for n, text in enumerate(lines, 1) if text.startswith(line))
        assert f"change.patch:{number}: " in done.err
    assert {p: p.read_bytes() for p in demo.root.rglob("*") if p.is_file()} == before
