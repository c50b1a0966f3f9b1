"""``patchforge serve`` as a process: it verifies, prints, and becomes the server, or says why not and starts nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from place import KEY, Place, Ran

from patchforge import cli


def started(ran: Ran) -> dict:
    assert ran.record is not None, ran.text
    return ran.record


def not_started(ran: Ran, status: int) -> Ran:
    assert ran.record is None
    assert ran.status == status, ran.text
    assert "Traceback" not in ran.text
    return ran


@pytest.mark.parametrize("mode", ["batch", "single", "quoting", "long", "huge", "cpu"])
def test_every_mode_prints_and_starts_nothing(place: Place, mode: str) -> None:
    ran = not_started(place.serve(mode, "--print"), 0)
    assert ran.out.startswith(f"mode {mode} (")
    document = not_started(place.serve(mode, "--print", "--format", "json"), 0).json
    assert (document["outcome"], document["mode"], document["status"]) == ("printed", mode, 0)
    # What is printed is what a shell would run.
    lines = ran.out.splitlines()
    first = next(n for n, line in enumerate(lines) if line.endswith(" \\"))
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
    script = "\n".join(lines[first:]).replace("vllm serve", f"{sys.executable} -c '{code}' vllm serve", 1)
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, env={})
    argv, env = json.loads(done.stdout)
    assert argv == document["argv"]
    assert {k: v for k, v in env.items() if k in document["env"]} == document["env"]


def test_it_becomes_the_server(place: Place) -> None:
    ran = place.serve("cpu", VLLM_API_KEY=KEY, HOST="0.0.0.0", LEAVE="5")
    record = started(ran)
    assert ran.status == 5, "the server's own exit status"
    assert record["argv"][0] == str(place.base / "bin/vllm")
    assert record["argv"][1:3] == ["serve", str(place.model)]
    assert record["argv"][record["argv"].index("--host") + 1] == "0.0.0.0"
    assert record["env"]["VLLM_API_KEY"] == KEY
    assert record["env"]["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert not {"HOST", "MODEL"} & set(record["env"])
    assert not any(KEY in word for word in [*record["argv"], *record["cmdline"]])
    assert KEY not in ran.text and "VLLM_API_KEY is set, from VLLM_API_KEY" in ran.out
    assert "1 patch applied, 1 file as locked" in ran.out.splitlines()[0]


def test_the_server_starts_with_the_signals_as_the_container_set_them(place: Place) -> None:
    (place.base / "bin/vllm").write_text("#!/bin/sh\nexec grep -E 'Sig(Ign|Blk)' /proc/self/status\n")
    ran = place.serve("cpu", "-q")
    masks = dict(line.split(":\t") for line in ran.out.splitlines())
    assert int(masks["SigIgn"], 16) & (1 << (signal.SIGPIPE - 1)) == 0, "Python ignores it, the server need not"
    assert int(masks["SigBlk"], 16) == 0


def test_what_was_printed_is_what_runs(place: Place) -> None:
    ran = place.serve("cpu", "--format", "json", "--set", "MAX_SEQS=3", VLLM_API_KEY=KEY)
    record = started(ran)
    document = ran.json
    assert document["outcome"] == "starting"
    assert document["argv"] == record["argv"]
    assert document["env"] == {**{k: record["env"][k] for k in document["env"]}, "VLLM_API_KEY": "***"}
    assert [p["result"] for p in document["patches"]] == ["applied"]
    assert KEY not in ran.text


def test_the_key_from_a_file(place: Place) -> None:
    file = place.base / "key"
    file.write_text(KEY + "\n")
    ran = place.serve("cpu", API_KEY_FILE=str(file), HOST="0.0.0.0")
    record = started(ran)
    assert record["env"]["VLLM_API_KEY"] == KEY
    assert "API_KEY_FILE" not in record["env"]
    assert KEY not in ran.text + " ".join(record["cmdline"])
    assert f"from {file}" in ran.out


def test_the_key_is_not_in_the_process_list_while_it_starts(place: Place) -> None:
    env = place.environment({"VLLM_API_KEY": KEY, "LINGER": "1"})
    process = subprocess.Popen(
        place.words("cpu"), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place.base
    )
    try:
        seen: set[bytes] = set()
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not place.record.exists():
            seen.add(Path(f"/proc/{process.pid}/cmdline").read_bytes())
            time.sleep(0.005)
        record = json.loads(place.record.read_text())
        assert record["pid"] == process.pid, "no process stands between the container and the server"
        assert not any(KEY.encode() in words for words in seen)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 7
        assert Path(f"{place.record}.signal").read_text() == str(int(signal.SIGTERM))
    finally:
        process.kill()
        out, err = process.communicate()
    assert KEY.encode() not in out + err


def test_a_changed_byte_is_named_and_nothing_starts(place: Place) -> None:
    core = place.site / "vllm/core.py"
    core.write_bytes(core.read_bytes().replace(b"True", b"Tru3"))
    ran = not_started(place.serve("cpu"), 1)
    assert "core.py: neither pristine nor the outcome of any patch" in ran.err
    assert "the server was not started" in ran.out
    document = not_started(place.serve("cpu", "--format", "json"), 1).json
    assert document["outcome"] == "refused"
    assert [(p["file"], p["reason"]) for p in document["problems"]] == [("core.py", "altered")]


def test_a_changed_byte_outside_the_series_is_found_with_full(place: Place) -> None:
    (place.site / "vllm/__init__.py").write_bytes(b"#\n")
    started(place.serve("cpu"))
    ran = not_started(place.serve("cpu", "--full"), 1)
    assert "vllm/__init__.py is not as it was installed" in ran.err


@pytest.mark.parametrize("how", ["reverted", "missing", "mode", "lock", "patch"])
def test_any_other_tree_than_the_locked_one_is_not_served(place: Place, how: str) -> None:
    core = place.site / "vllm/core.py"
    if how == "reverted":
        assert cli.run(["revert", "--project", str(place.project), "--tree", str(place.site), "-q"]) == 0
    elif how == "missing":
        core.unlink()
    elif how == "mode":
        core.chmod(0o755)
    elif how == "lock":
        (place.project / "series/vllm-0.31.0/lock.toml").unlink()
    else:
        patch = place.project / "patches/vllm-0.31.0/auth-deny-default.patch"
        patch.write_bytes(patch.read_bytes().replace(b"Every path", b"Each path", 1))
    ran = not_started(place.serve("cpu"), 1)
    assert "error: " in ran.err
    word = {"reverted": "not applied", "missing": "missing", "mode": "mode", "lock": "lock", "patch": "lock"}[how]
    assert word in ran.err


def test_an_open_bind_without_a_key(place: Place) -> None:
    ran = not_started(place.serve("cpu", HOST="0.0.0.0"), 2)
    assert "export VLLM_API_KEY=$(openssl rand -hex 24)" in ran.err
    not_started(place.serve("cpu", "--print", HOST="0.0.0.0"), 2)


def test_what_only_stands_in_the_way_here(place: Place) -> None:
    ran = not_started(place.serve("quoting"), 1)
    assert "needs the patch dflash2-lookup-drafting, which the series does not carry" in ran.err
    assert ran.out.rstrip().endswith("the server was not started")
    ran = not_started(place.serve("quoting", "--print"), 0)
    assert "warning: " in ran.err and "dflash2-lookup-drafting" in ran.err
    shm = not_started(place.serve("single", "--set", "KV_OFFLOAD_GB=4000"), 1)
    assert "/dev/shm has less room" in shm.err


@pytest.mark.parametrize(
    ("words", "env", "message"),
    [
        (["cpu", "--set", "PORTS=1"], {}, "no knob 'PORTS'"),
        (["cpu"], {"PORT": KEY}, "PORT (environment): '***' is not a whole number"),
        (["cpu"], {"VLLM_TYPO": "1"}, "VLLM_TYPO, which vllm 0.31.0 does not know"),
        (["cpu"], {"VLLM_USE_RUST_FRONTEND": "1"}, "asks for no key"),
        (["cpu"], {"EXTRA_ARGS": f"--api-key {KEY}"}, "--api-key is not taken"),
        (["cpu"], {"MODEL": "/nowhere"}, "MODEL=/nowhere is no directory with a config.json"),
        (["nothing"], {}, "no mode 'nothing'"),
        ([], {}, "which mode?"),
    ],
)
def test_wrong_input_is_status_2_and_holds_no_key(
    place: Place, words: list[str], env: dict[str, str], message: str
) -> None:
    ran = not_started(place.serve(*words, "--format", "json", **{"VLLM_API_KEY": KEY, **env}), 2)
    assert ran.json["status"] == 2
    assert message in " ".join(problem["message"] for problem in ran.json["problems"])
    assert KEY not in ran.text


def test_bytes_that_are_no_text(place: Place) -> None:
    """The environment is bytes, and somebody else's."""
    odd = {b"VLLM_\xff": b"1", b"PREFIX_CACH\xff": b"1", b"OTHER": b"\xff"}
    env = {os.fsencode(k): os.fsencode(v) for k, v in place.environment({}).items()} | odd
    done = subprocess.run(place.words("cpu"), capture_output=True, check=False, env=env, cwd=place.base)
    assert done.returncode == 2
    assert b"the environment has VLLM_\\udcff, which" in done.stderr
    del env[b"VLLM_\xff"]
    done = subprocess.run(place.words("cpu"), capture_output=True, check=False, env=env, cwd=place.base)
    assert done.returncode == 0, done.stderr
    env[b"MODEL"] = b"/models/\xff"
    done = subprocess.run(place.words("cpu"), capture_output=True, check=False, env=env, cwd=place.base)
    assert done.returncode == 2 and b"cannot be printed" in done.stderr


def test_a_user_who_may_write_nothing(place: Place) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to become another user")
    become = ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups"]
    for folder in [place.base, *place.base.parents]:
        if "pytest" in str(folder):
            folder.chmod(0o755)
    env = place.environment({"HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"})
    seen = [sys.executable, "-c", f"import os, patchforge; os.listdir({str(place.base)!r})"]
    if subprocess.run([*become, *seen], capture_output=True, check=False, env=env, cwd="/").returncode:
        pytest.skip("the interpreter, patchforge or the folder of the test is closed to other users")
    (place.base / "bin/vllm").write_text("#!/bin/sh\nid -u\n")
    done = subprocess.run(
        [*become, *place.words("cpu", "-q")], capture_output=True, text=True, check=False, env=env, cwd="/"
    )
    assert (done.stdout, done.stderr) == ("65532\n", "")


def test_a_knob_a_patch_adds(place: Place) -> None:
    record = started(place.serve("cpu", "--set", "VLLM_DEMO_LOG=1"))
    assert record["env"]["VLLM_DEMO_LOG"] == "1"
    record = started(place.serve("cpu", VLLM_DEMO_LOG="1"))
    assert record["env"]["VLLM_DEMO_LOG"] == "1"
    ran = not_started(place.serve("cpu", VLLM_DEMO_LOG="yes"), 2)
    assert "VLLM_DEMO_LOG (environment): 'yes' is neither 0 nor 1" in ran.err


def test_no_program(place: Place) -> None:
    (place.base / "bin/vllm").unlink()
    ran = not_started(place.serve("cpu", PATH=str(place.base / "bin")), 1)
    assert "there is no program 'vllm'" in ran.err


def test_a_program_that_cannot_be_run(place: Place) -> None:
    (place.base / "bin/vllm").write_text("#!/nowhere/python\n")
    ran = not_started(place.serve("cpu", VLLM_API_KEY=KEY), 1)
    assert "cannot be started" in ran.err and KEY not in ran.text


def test_the_program_beside_the_verified_interpreter(place: Place, tmp_path: Path) -> None:
    """Not the one on the search path, which may belong to another tree."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    for entry in place.site.iterdir():
        os.rename(entry, site / entry.name)
    words = [
        sys.executable,
        "-m",
        "patchforge",
        "serve",
        "cpu",
        "--project",
        str(place.project),
        "--python",
        str(venv / "bin/python"),
    ]
    env = place.environment({})
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)
    assert done.returncode == 1
    assert "there is no program 'vllm' beside" in done.stderr and not place.record.exists()
    (venv / "bin/vllm").write_bytes((place.base / "bin/vllm").read_bytes())
    (venv / "bin/vllm").chmod(0o755)
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(place.record.read_text())["argv"][0] == str(venv / "bin/vllm")


def test_an_import_path_that_hides_the_verified_tree(place: Place) -> None:
    other = place.base / "other"
    (other / "vllm").mkdir(parents=True)
    path = os.pathsep.join([str(other), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    ran = not_started(place.serve("cpu", PYTHONPATH=path), 1)
    assert f"PYTHONPATH names {other}" in ran.err


def test_the_cpu_build_is_started_by_its_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = Place(tmp_path)
    place.create("vllm-cpu")
    place.prepare()
    capsys.readouterr()
    record = started(place.serve("cpu"))
    assert record["argv"][:6] == [
        str(place.base / "bin/python"),
        "-P",
        "-m",
        "vllm.entrypoints.launchers.api_server.entry",
        "--model",
        str(place.model),
    ]
    assert "the CPU build" in not_started(place.serve("batch"), 1).err


def test_print_needs_no_installed_tree(place: Place) -> None:
    words = [sys.executable, "-m", "patchforge", "serve", "single", "--print", "--project", str(place.project)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=place.environment({}), cwd=place.base)
    assert done.returncode == 0 and done.stdout.startswith("mode single (B)")
    done = subprocess.run(words[:5] + words[6:], capture_output=True, text=True, check=False, env=place.environment({}))
    assert done.returncode == 1 and "is not installed" in done.stderr


def test_another_table(place: Place) -> None:
    from patchforge import resources

    text = resources.template("modes.yaml")
    file = place.base / "modes.yaml"
    file.write_text(text.replace("default: 18020", "default: 18021"))
    record = started(place.serve("cpu", "--modes", str(file)))
    assert record["argv"][record["argv"].index("--port") + 1] == "18021"
    line = text[: text.index("default: 18020")].count("\n") + 1
    file.write_text(text.replace("default: 18020", "defualt: 18020"))
    ran = not_started(place.serve("cpu", "--modes", str(file)), 2)
    assert f"{file}:{line}: knobs.PORT: unknown key 'defualt'" in ran.err
    assert "did you mean 'default'?" in ran.err
    ran = not_started(place.serve("cpu", "--modes", str(place.base / "none.yaml")), 2)
    assert "cannot be read" in ran.err


def test_a_table_for_another_release(place: Place) -> None:
    envs = place.site / "vllm/envs.py"
    envs.write_bytes(envs.read_bytes().replace(b"environment_variables", b"something_else"))
    ran = not_started(place.serve("cpu"), 2)
    assert "envs.py of the installed tree has no dictionary environment_variables" in ran.err


def test_quiet_still_starts(place: Place) -> None:
    ran = place.serve("cpu", "-q")
    started(ran)
    assert ran.text == ""


def test_a_bug_leaves_no_key_in_its_log(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(environ: dict[str, str]) -> None:
        raise ZeroDivisionError(f"with {environ['VLLM_API_KEY']} in it")

    monkeypatch.setattr("patchforge.cli.serving.look", broken)
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(place.base / "cache"))
    assert cli.run(["serve", "cpu", "--project", str(place.project), "--tree", str(place.site)]) == 3
    (log,) = (place.base / "cache/patchforge").glob("crash-*.log")
    text = log.read_text() + "".join(capsys.readouterr())
    assert "ZeroDivisionError: with *** in it" in text and KEY not in text


def test_a_dead_engines_memory_is_given_back_before_the_start(place: Place) -> None:
    from patchforge import resources

    # A name of its own: the other tests start servers too, on the same shared memory.
    left = Path(f"/dev/shm/patchforge_test_{uuid.uuid4().hex}.mmap")
    file = place.base / "modes.yaml"
    file.write_text(resources.template("modes.yaml").replace("/dev/shm/vllm_offload_*.mmap", str(left)))
    left.write_bytes(b"x" * 4096)
    try:
        not_started(place.serve("cpu", "--print", "--modes", str(file)), 0)
        assert left.exists(), "looking changes nothing"
        with left.open("rb"):
            ran = place.serve("cpu", "--modes", str(file))
            started(ran)
            assert left.exists() and str(left) not in ran.text
        ran = place.serve("cpu", "--modes", str(file))
        started(ran)
        assert not left.exists()
        assert f"removed {left}, which a dead engine left (4096 bytes)" in ran.err
    finally:
        left.unlink(missing_ok=True)


def test_the_program_knows_its_own_path(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter finds its environment by the path it was started with."""
    called: list[tuple[str, list[str], dict[str, str]]] = []

    def record(program: str, argv: list[str], env: dict[str, str]) -> None:
        called.append((program, argv, env))
        raise OSError(8, "Exec format error")

    monkeypatch.setattr("os.execvpe", record)
    for name, value in place.environment({"VLLM_API_KEY": KEY}).items():
        monkeypatch.setenv(name, value)
    assert cli.run(["serve", "cpu", "-q", "--project", str(place.project), "--tree", str(place.site)]) == 1
    ((program, argv, env),) = called
    assert program == argv[0] == str(place.base / "bin/vllm")
    assert env["VLLM_API_KEY"] == KEY and not any(KEY in word for word in argv)
