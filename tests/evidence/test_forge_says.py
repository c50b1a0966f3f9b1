"""What a forge says of pull requests: which are looked up, what is shown, and that no verdict listens."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from demo import CORE, LOG, NAMES, Demo
from test_judging import judged
from test_truth import OLD, ROWS
from test_write import files, prepared, release

from forge import COMMIT, Forge, Reply, pull, serving
from patchforge import cli
from patchforge.evidence.model import VERDICTS, Said
from patchforge.evidence.pulls import Places, beside, remark, said_of
from patchforge.evidence.retire import Terms, decide
from patchforge.evidence.verdict import judge
from patchforge.headers.conditions import parse_retires
from patchforge.headers.upstream import parse_upstream
from patchforge.releases.forge import Answer, Place
from patchforge.releases.history import Logged
from patchforge.releases.pulls import Pull
from repository import Upstream

DEMO, FLASH = Place("github.com", "org", "demo"), Place("git.example", "lab", "flash")
PLACES = Places({"demo": DEMO, "flash-attention": FLASH}, frozenset({"github.com", "git.example"}))
MERGED = Answer("merged", "2026-11-20T08:30:00Z", "2026-11-20T08:30:00Z", COMMIT, "main")
SECRET = "ghp_0123456789secret"
STARTS = CORE.replace(b"        self.running = True\n", b"        self.running = True\n        self.starts = 1\n", 1)
VARIABLES = (
    *("PATCHFORGE_GITHUB_API", "PATCHFORGE_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST"),
    *("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITHUB_SERVER_URL"),
)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("demo #12 (open)", [(DEMO, 12)]),
        ("Demo #12 (open), flash_attention #9 (merged)", [(DEMO, 12), (FLASH, 9)]),
        ("https://github.com/Org/Other/pull/31", [(Place("github.com", "Org", "Other"), 31)]),
        ("https://www.github.com/org/other/pull/31/files", [(Place("github.com", "org", "other"), 31)]),
        ("http://git.example/org/other/pull/31.patch", [(Place("git.example", "org", "other"), 31)]),
        ("other #12 (open)", ["nothing says where other is developed: --repository other=OWNER/NAME"]),
        ("https://host.example/org/x/pull/3", ["host.example is not asked: --repository PROJECT=host.example/org/x"]),
        ("https://github.com/org/other/issues/31", ["it is not the address of a pull request"]),
        ("https://github.com/org/other/commit/0123abc", ["it is not the address of a pull request"]),
        ("https://github.com/org/other/pull/31x", ["it is not the address of a pull request"]),
        ("https://user:pw@github.com/org/other/pull/31", ["it is not the address of a pull request"]),
        ("https://github.com/../other/pull/31", ["it is not the address of a pull request"]),
        ("https://[github.com/org/other/pull/31", ["it is no address"]),
        ("none (found here)", []),
    ],
)
def test_where_references_lead(value: str, found: list[Any]) -> None:
    got = [PLACES.find(reference) for reference in parse_upstream(value)]
    assert len(got) == len(found)
    for one, want in zip(got, found, strict=True):
        assert one == want or (isinstance(one, str) and isinstance(want, str) and one.startswith(want))


def test_what_is_known_of_a_patchs_references() -> None:
    known = Pull(DEMO, 12, MERGED, "2026-12-02T12:00:00Z")
    said = said_of(parse_upstream("demo #12 (open), other #3 (closed)"), PLACES, {(DEMO, 12): known})
    assert [(s.reference, s.header, s.pull) for s in said] == [
        ("demo #12", "open", known),
        ("other #3", "closed", None),
    ]
    assert said[1].why.startswith("nothing says where other is developed")


STATES = [
    None,
    Pull(DEMO, 12, why="nobody answers"),
    Pull(DEMO, 12, Answer("open"), "2026-12-02T12:00:00Z"),
    Pull(DEMO, 12, Answer("closed"), "2026-12-02T12:00:00Z"),
    Pull(DEMO, 12, MERGED, "2026-12-02T12:00:00Z"),
]


@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_verdict_listens(row: Any, state: Pull | None) -> None:
    before = judged({"store.py": row.new})
    said = {"p": (Said("demo #12", "open", state),)}
    (after,) = beside([before], said)
    assert after.signals.pulls == said["p"]
    assert replace(after, signals=before.signals) == before
    assert judge("p", after.signals, True) == replace(judge("p", before.signals, True), signals=after.signals)
    terms = {"p": Terms(parse_retires("carries #12"))}
    assert decide([after], terms, None) == decide([before], terms, None)


class Log:
    """The history of a release that has the merge, or has not."""

    def __init__(self, *commits: str) -> None:
        self._commits = commits

    def merged(self, commit: str) -> Logged | None:
        return Logged(commit, "Count the starts (#12)", "") if commit in self._commits else None


def shown(verdict: str, pull: Pull | None, header: str = "", history: Log | None = None) -> str:
    found = replace(judged({"store.py": OLD}), verdict=verdict)
    (after,) = beside([found], {"p": (Said("demo #12", header, pull),)}, history)  # type: ignore[arg-type]
    assert after.signals.pulls is not None
    return remark(verdict, after.signals.pulls[0])


def test_what_a_person_should_see() -> None:
    nothing, silent, open_, closed, merged = STATES
    assert shown("keep", merged) == "merged, and the release has none of it"
    assert "may be its form of it" in shown("conflict", merged)
    assert shown("landed", merged) == shown("partial", merged) == ""
    assert shown("landed", open_) == shown("landed", closed) == "not merged, and yet the release has it"
    assert {shown(verdict, open_) for verdict in VERDICTS if verdict != "landed"} == {""}
    assert shown("landed", nothing, "open") == shown("landed", silent, "open") == ""
    assert shown("partial", merged, "open") == "the header says open"
    assert shown("partial", merged, "merged") == ""


def test_the_merge_in_the_releases_log() -> None:
    merged, open_ = STATES[4], STATES[2]
    assert shown("partial", merged, history=Log()) == "the release's log does not have it"
    assert shown("partial", merged, history=Log(COMMIT)).endswith("log has it: 012345678 (Count the starts (#12))")
    assert shown("partial", open_, history=Log(COMMIT)) == ""


# As a user runs it.


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Forge]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with serving(Forge({"org/demo/12": pull(12, "closed", merged="2026-11-20T08:30:00Z")})) as found:
        monkeypatch.setenv("PATCHFORGE_GITHUB_API", f"{found.url}/")
        monkeypatch.setenv("PATCHFORGE_GITHUB_TOKEN", f"{SECRET}\n")
        yield found


def homepage(demo: Demo, line: str = "Project-URL: Homepage, https://github.com/org/demo") -> None:
    metadata = demo.site / "demo-1.0.dist-info/METADATA"
    metadata.write_bytes(metadata.read_bytes() + f"{line}\n".encode())


def later(demo: Demo, tmp_path: Path, core: bytes = CORE) -> str:
    return release(demo, tmp_path, core=core)


def pulls(document: Any, name: str = "log") -> Any:
    (found,) = [p["signals"].get("pulls") for p in document["patches"] if p["name"] == name]
    return found


def test_json_and_explain(demo: Demo, forge: Forge, tmp_path: Path) -> None:
    homepage(demo)
    target = later(demo, tmp_path)
    words = ["retire-scan", "--against", target, "--pulls", "ask"]
    done = demo.run(*words, "--format", "json")
    assert done.status == 0, done.err
    (one,) = pulls(done.json)
    asked = one.pop("asked")
    assert one == {
        "reference": "demo #12",
        "header": "open",
        "repository": "github.com/org/demo",
        "number": 12,
        "state": "merged",
        "merged": "2026-11-20T08:30:00Z",
        "closed": "2026-11-20T08:30:00Z",
        "commit": COMMIT,
        "base": "main",
        "carried": None,
        "why": None,
        "remark": "merged, and the release has none of it; the header says open",
    }
    assert pulls(done.json, "names") == []
    assert {(p["verdict"], p["confidence"]) for p in done.json["patches"]} == {("keep", "high")}
    assert forge.tokens == [f"Bearer {SECRET}"]
    done = demo.run(*words, "--explain", "log")
    assert "log    demo #12      merged on 2026-11-20 into main  " + asked[:10] in done.out
    assert (
        f"its upstream reference demo #12: merged on 2026-11-20 into main (as of {asked[:10]}; merged, and the release has "
        "none of it; the header says open)"
    ) in done.out
    assert len(forge.asked) == 1, "the second run asks nobody"


def test_markdown_has_the_table(demo: Demo, forge: Forge, tmp_path: Path) -> None:
    homepage(demo)
    done = demo.run("retire-scan", "--against", later(demo, tmp_path), "--pulls", "ask", "--format", "markdown")
    assert "| log | demo \\#12 | merged on 2026-11-20 into main | 2" in done.out


def test_nobody_is_asked_unasked(demo: Demo, forge: Forge, tmp_path: Path) -> None:
    homepage(demo)
    target = later(demo, tmp_path)
    for words in (["retire-scan"], ["retire-scan", "--pulls", "cached"], ["radar"]):
        done = demo.run(*words, "--against", target, "--format", "json")
        assert done.status == 0, done.err
    assert not forge.asked
    plain = demo.run("retire-scan", "--against", target, "--format", "json")
    assert pulls(plain.json) is None
    (one,) = pulls(demo.run("retire-scan", "--against", target, "--pulls", "cached", "--format", "json").json)
    assert (one["state"], one["why"]) == ("unknown", "not looked up: it is not in the cache")
    assert not forge.asked


def test_a_release_that_is_none_costs_no_request(demo: Demo, forge: Forge) -> None:
    homepage(demo)
    assert demo.run("retire-scan", "--against", "nowhere.whl", "--pulls", "ask").status == 2
    assert not forge.asked


def test_several_releases_ask_once(demo: Demo, forge: Forge, tmp_path: Path) -> None:
    homepage(demo)
    one = later(demo, tmp_path)
    two = shutil.copytree(one, tmp_path / "1.2")
    done = demo.run("retire-scan", "--against", one, "--against", str(two), "--pulls", "ask", "--format", "json")
    assert [p["signals"]["pulls"][0]["state"] for p in done.json["patches"] if p["name"] == "log"] == ["merged"] * 2
    assert len(forge.asked) == 1


@pytest.mark.parametrize("reply", [Reply(404), Reply(403, headers={"X-RateLimit-Remaining": "0"}), Reply(500), Reply()])
def test_no_answer_is_no_error(demo: Demo, forge: Forge, tmp_path: Path, reply: Reply) -> None:
    homepage(demo)
    forge.pulls["org/demo/12"] = reply
    target = later(demo, tmp_path, STARTS)
    plain = demo.run("retire-scan", "--against", target, "--format", "json").json
    done = demo.run("retire-scan", "--against", target, "--pulls", "ask", "--format", "json")
    assert done.status == 0, done.err
    assert pulls(done.json)[0]["state"] == "unknown" and pulls(done.json)[0]["why"]
    found = done.json
    for patch in found["patches"]:
        del patch["signals"]["pulls"]
    assert found == plain


@pytest.mark.parametrize("landed", [False, True])
def test_write_does_not_listen(demo: Demo, forge: Forge, tmp_path: Path, landed: bool) -> None:
    """A merge drops nothing that the trees do not show; what they show goes, merged or not."""
    homepage(demo)
    prepared(demo)
    forge.pulls["org/demo/12"] = pull(12) if landed else forge.pulls["org/demo/12"]
    target, before = later(demo, tmp_path, STARTS if landed else CORE), files(demo)
    done = demo.run("retire-scan", "--against", target, "--pulls", "ask", "--write", "--format", "json")
    assert done.status == 0, done.err
    assert done.json["removed"] == (["log"] if landed else [])
    assert (files(demo) == before) is not landed
    assert pulls(done.json)[0]["remark"] == (
        "not merged, and yet the release has it"
        if landed
        else "merged, and the release has none of it; the header says open"
    )


def test_the_releases_log_beside_it(demo: Demo, forge: Forge, tmp_path: Path) -> None:
    homepage(demo)
    up = Upstream.create(tmp_path / "up")
    up.commit(
        "Begin", {"demo/__init__.py": b"", "demo/core.py": CORE, "demo/data/text.txt": b"one\ntwo\nthree\nfour\nfive\n"}
    )
    up.tag("v1.0")
    merge = up.commit("Count the starts", {"demo/core.py": STARTS})
    up.tag("v1.1")
    up.git("checkout", "--quiet", "v1.0")
    up.commit(f"Count the starts\n\n(cherry picked from commit {merge})", {"demo/core.py": STARTS})
    up.tag("v1.0.1")
    forge.pulls["org/demo/12"] = pull(12, "closed", merged="2026-11-20T08:30:00Z", merge_commit_sha=merge)
    for tag, carried in (("v1.0", None), ("v1.1", "(Count the starts)"), ("v1.0.1", "(Count the starts)")):
        target = f"{up.directory}@{tag}"
        (one,) = pulls(demo.run("retire-scan", "--against", target, "--pulls", "ask", "--format", "json").json)
        if carried is None:
            assert one["carried"] is None and "the release's log does not have it" in one["remark"]
        else:
            assert one["carried"].endswith(carried) and "the release's log has it: " in one["remark"]


def test_the_token_is_shown_nowhere(demo: Demo, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homepage(demo)
    target = later(demo, tmp_path)
    everything = []
    replies = [forge.pulls["org/demo/12"], Reply(401), Reply(302, headers={"Location": "https://other.example/"})]
    for number, reply in enumerate(replies):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache-{number}"))
        forge.pulls["org/demo/12"] = reply
        for form in ("text", "json", "github", "markdown"):
            done = demo.run("retire-scan", "--against", target, "--pulls", "ask", "--explain", "log", "--format", form)
            everything += [done.out, done.err]
    assert set(forge.tokens) == {f"Bearer {SECRET}"}
    kept = [p.read_text() for p in tmp_path.glob("cache-*/**/*") if p.is_file()]
    assert len(kept) == 1
    assert SECRET not in "".join(everything + kept)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repository", "org/demo"], "--repository says where --pulls looks"),
        (["--pulls", "ask", "--repository", "demo"], "is not [PROJECT=][HOST/]OWNER/NAME"),
        (["--pulls", "ask", "--repository", "a b=org/demo"], "is not [PROJECT=]"),
        (["--pulls", "ask", "--repository", "https://user@host.example/org/demo"], "is not [PROJECT=]"),
        (["--pulls", "ask", "--repository", "=a/b/c/d"], "is not [PROJECT=]"),
    ],
)
def test_wrong_options(demo: Demo, forge: Forge, tmp_path: Path, words: list[str], message: str) -> None:
    done = demo.run("retire-scan", "--against", later(demo, tmp_path), *words)
    assert done.status == 2
    assert message in done.err
    assert not forge.asked


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PATCHFORGE_GITHUB_API", "ftp://api.example", "PATCHFORGE_GITHUB_API is not an address"),
        ("PATCHFORGE_GITHUB_API", f"https://{SECRET}@api.example", "PATCHFORGE_GITHUB_API is not an address"),
        ("PATCHFORGE_GITHUB_API", "https://[api.example", "PATCHFORGE_GITHUB_API is not an address"),
        ("PATCHFORGE_GITHUB_API", "https://api.example:port", "PATCHFORGE_GITHUB_API is not an address"),
        ("PATCHFORGE_GITHUB_API", "http://api.example", "would travel readable to api.example"),
        ("PATCHFORGE_GITHUB_TOKEN", f"{SECRET} or so", "PATCHFORGE_GITHUB_TOKEN has characters"),
        ("GH_HOST", "a b", "GH_HOST='a b' is not a host"),
    ],
)
def test_a_wrong_environment(
    demo: Demo, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    done = demo.run("retire-scan", "--against", later(demo, tmp_path), "--pulls", "ask")
    assert done.status == 2
    assert message in done.err
    assert SECRET not in done.err + done.out


def test_a_bare_series_has_no_references(
    demo: Demo, forge: Forge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(demo.series / "series", demo.patches / "series")
    words = ["retire-scan", "--quilt", str(demo.patches), "--old", str(demo.site / "demo")]
    assert cli.run([*words, "--new", later(demo, tmp_path) + "/demo", "--pulls", "ask"]) == 2
    assert "--pulls is for a project" in capsys.readouterr().err


def test_numbers_of_which_nothing_says_where_they_are(demo: Demo, forge: Forge, tmp_path: Path) -> None:
    target = later(demo, tmp_path)
    words = ["retire-scan", "--against", target, "--pulls", "ask", "--format", "json"]
    (one,) = pulls(demo.run(*words).json)
    assert (one["state"], one["repository"]) == ("unknown", None)
    assert one["why"] == "nothing says where demo is developed: --repository demo=OWNER/NAME"
    assert not forge.asked
    for given in ("org/demo", "demo=org/demo", "Demo=https://github.com/org/demo/"):
        (one,) = pulls(demo.run(*words, "--repository", given).json)
        assert (one["state"], one["repository"]) == ("merged", "github.com/org/demo")


def test_other_projects_and_addresses(demo: Demo, forge: Forge, tmp_path: Path) -> None:
    upstream = b"other #7 (open), https://github.com/org/third/pull/8, https://git.example/org/x/pull/9"
    demo.write_patches(log=LOG.replace(b"demo #12 (open)", upstream))
    forge.pulls |= {"org/other/7": pull(7), "org/third/8": pull(8, "closed")}
    words = ["--pulls", "ask", "--repository", "other=org/other", "--format", "json"]
    found = pulls(demo.run("retire-scan", "--against", later(demo, tmp_path), *words).json)
    assert [one["state"] for one in found] == ["open", "closed", "unknown"]
    assert found[2]["why"].startswith("git.example is not asked")
    assert sorted(path for path, _ in forge.asked) == ["/repos/org/other/pulls/7", "/repos/org/third/pulls/8"]


@pytest.mark.parametrize(
    ("environment", "tokens"),
    [
        ({}, {"github.com": ""}),
        ({"GH_TOKEN": "a", "GITHUB_TOKEN": "b"}, {"github.com": "a"}),
        ({"GITHUB_TOKEN": "b", "GITHUB_SERVER_URL": "https://github.com"}, {"github.com": "b"}),
        ({"PATCHFORGE_GITHUB_TOKEN": "o", "GH_TOKEN": "a"}, {"github.com": "o"}),
        ({"GITHUB_TOKEN": "b", "GITHUB_SERVER_URL": "https://[x"}, {"github.com": ""}),
        # A runner of an enterprise's own server: its token is not GitHub's.
        (
            {"GITHUB_TOKEN": "b", "GITHUB_SERVER_URL": "https://git.example", "GH_HOST": "git.example"},
            {"github.com": "", "git.example": "b"},
        ),
        (
            {"GH_TOKEN": "a", "GH_ENTERPRISE_TOKEN": "e", "GH_HOST": "git.example"},
            {"github.com": "a", "git.example": "e"},
        ),
        ({"GH_TOKEN": "a", "GH_HOST": "acme.ghe.com"}, {"github.com": "", "acme.ghe.com": "a"}),
        # Another address is not GitHub, whatever it says.
        ({"GH_TOKEN": "a", "GITHUB_TOKEN": "b", "PATCHFORGE_GITHUB_API": "https://mirror.example"}, {"github.com": ""}),
        ({"PATCHFORGE_GITHUB_TOKEN": "o", "PATCHFORGE_GITHUB_API": "https://mirror.example"}, {"github.com": "o"}),
    ],
)
def test_whose_token_it_is(
    demo: Demo, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], tokens: dict[str, str]
) -> None:
    from patchforge.cli import pulling, targets
    from patchforge.cli.options import Pulls

    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    series = targets.load(targets.Where(project=demo.root))
    asked = pulling.asked(Pulls.ask, ["host.example/org/demo"], series)
    assert asked is not None
    assert {host: forge.token for host, forge in asked.forges.items()} == {**tokens, "host.example": ""}
    assert asked.forges["host.example"].api == "https://host.example/api/v3"


def test_the_page_shows_what_it_prints(
    demo: Demo, forge: Forge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homepage(demo)
    quiet = (
        LOG.replace(b"#12", b"#15").replace(b"Engine", b"Worker").replace(b"starts", b"jobs").replace(b"-4,6", b"-14,4")
    )
    quiet = quiet.replace(b"+4,7", b"+15,5").replace(b"running", b"busy").replace(b" \n     def stop(self):\n", b"")
    names = NAMES.replace(b"none (found here)", b"demo #9 (open), demo #31 (open)")
    demo.write_patches(log=LOG, quiet=quiet.replace(b"import os", b""), names=names)
    forge.pulls |= {"org/demo/9": pull(9, "closed"), "org/demo/15": pull(15), "org/demo/31": pull(31)}
    core = CORE.replace(b"        self.busy = True\n", b"        self.busy = True\n        self.jobs = 1\n")
    release(demo, tmp_path, core=core)
    monkeypatch.chdir(tmp_path)
    began = datetime.now(UTC)
    done = demo.run("retire-scan", "--against", "1.1", "--pulls", "ask")
    assert done.status == 0, done.err
    page = (Path(__file__).parents[2] / "docs/retiring.md").read_text()
    shown = page.partition("$ patchforge retire-scan --against 1.1 --pulls ask\n")[2].partition("```")[0]
    printed = done.out
    for day in (began, datetime.now(UTC)):  # it may be midnight
        printed = printed.replace(f"{day:%Y-%m-%d}", "2026-12-03")
    assert shown == printed
