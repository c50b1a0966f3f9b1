"""What ``init`` refuses before it writes anything, and projects of several distributions."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchforge import cli


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["unidiff==1.0.1", "--root", "../.."], "the wheel has no package '../..'"),
        (["unidiff==1.0.1", "--root", "nonsense"], "its packages: unidiff"),
        (["six==1.16.0"], "its module six stands alone"),
        (["six==1.16.0", "--root", "six"], "its module six stands alone"),
    ],
)
def test_a_root_that_is_no_package_of_the_wheel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert cli.run(["init", *words, "--project", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_of_two_distributions_none_is_the_newest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--project", str(tmp_path)]
    assert cli.run(["init", "unidiff==1.0.1", "--root", "unidiff", *where]) == 0
    assert cli.run(["init", "idna==3.7", *where]) == 0
    capsys.readouterr()
    for words in (["status", "--fetch"], ["lint"], ["import", "x.patch", "--fetch"]):
        assert cli.run([*words, *where]) == 2
        err = capsys.readouterr().err
        assert "the project has series for several distributions" in err
        assert "say which: idna-3.7, unidiff-1.0.1" in err
    assert cli.run(["lint", "idna-3.7", *where]) == 0
