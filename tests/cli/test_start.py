"""What the command line is before any command runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import forked
from patchforge import __version__, cli


def start(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "patchforge", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        check=False,
    )


def test_version() -> None:
    done = start("--version")
    assert (done.returncode, done.stdout) == (0, f"patchforge {__version__}\n")


def test_help_lists_every_command() -> None:
    done = start("--help")
    assert done.returncode == 0
    for name in cli.COMMANDS:
        assert f"\n  {name} " in done.stdout
    assert "..." not in done.stdout.partition("Commands:")[2], "a help line is cut off"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help(name: str) -> None:
    done = forked.run([name, "--help"], os.environ)
    assert done.returncode == 0
    assert "--format" in done.stdout


def test_no_command_shows_the_help_and_is_wrong_usage() -> None:
    done = start()
    assert done.returncode == 2
    assert "Commands:" in done.stdout + done.stderr


def test_an_unknown_command_is_wrong_usage() -> None:
    done = start("aply")
    assert done.returncode == 2
    assert "aply" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    done = start("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0
    assert f"complete_{shell}" in done.stdout
    assert "patchforge" in done.stdout


def test_completion_of_commands_and_options() -> None:
    done = start(_PATCHFORGE_COMPLETE="complete_bash", COMP_WORDS="patchforge check-", COMP_CWORD="1")
    assert done.stdout.split() == ["check-table"]
    done = start(_PATCHFORGE_COMPLETE="complete_bash", COMP_WORDS="patchforge apply --up", COMP_CWORD="2")
    assert done.stdout.split() == ["--upto"]


def test_help_and_check_import_nothing_heavy() -> None:
    code = (
        "import sys; from patchforge import cli; cli.run(['--help']);"
        "print(sorted({'rich', 'yaml', 'jsonschema', 'git', 'pydantic', 'click', 'unidiff'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_bug_is_status_3_with_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path, capsys) -> None:
    from patchforge.cli.session import execute

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def work() -> None:
        raise ZeroDivisionError

    assert execute("apply", "text", False, work) == 3  # type: ignore[arg-type]
    (log,) = tmp_path.glob("patchforge/crash-*.log")
    assert "ZeroDivisionError" in log.read_text()
    assert str(log) in capsys.readouterr().err


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    from patchforge.cli import dispatch

    def command() -> None:
        raise KeyboardInterrupt

    assert dispatch.invoke({"apply": command, "other": command}, ["apply"]) == 130


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "patchforge", "lint", "--quilt", ".", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    process.wait()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
