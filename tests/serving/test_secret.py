"""The key shows itself nowhere."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from place import BIG, KEY, everything, installed

from patchforge.errors import InputError, ManyProblems, Problem
from patchforge.reports.serving import serve_report
from patchforge.reports.text import plain
from patchforge.serving.resolve import resolve
from patchforge.serving.secret import HIDDEN, Secret, hidden_error, known_keys, read_key
from patchforge.serving.table import Table


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(KEY)
    shown = f"{secret} {secret!r} {[secret]} { ({'k': secret}) }" + "%s %r" % (secret, secret)  # noqa: UP031
    assert KEY not in shown and HIDDEN in shown
    assert secret.reveal() == KEY
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps({"key": secret})
    with pytest.raises(TypeError):
        copy.deepcopy(secret)
    assert secret == Secret(KEY) and secret != Secret(KEY + "x") and secret != KEY
    assert not hasattr(secret, "__dict__")


def test_where_the_key_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY + "\n")
    create = "openssl rand -hex 24"
    assert read_key({}, "K", None, create) == (None, "")
    assert read_key({"K": ""}, "K", None, create) == (None, "")
    assert read_key({}, "K", str(file), create) == (Secret(KEY), str(file))
    assert read_key({"K": KEY[::-1]}, "K", str(file), create) == (Secret(KEY[::-1]), "K"), "the variable wins"
    for content, message in (
        (b"\n", "is empty"),
        (b"\xff" * 20, "not one word"),
        (b"a" * 7, "fewer than 8"),
        (b"a b" * 9, "one word"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=message) as caught:
            read_key({}, "K", str(file), create)
        assert create in (caught.value.hint or "")
    file.unlink()
    file.mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_key({}, "K", str(file), create)


def test_a_key_put_where_its_file_should_be_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        read_key({}, "K", KEY, "x")
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_the_report_holds_no_key_in_any_form(table: Table) -> None:
    env = {"VLLM_API_KEY": KEY, "HOST": "0.0.0.0", "PREFIX_CAHCE": KEY}
    configuration = resolve(table, "single", env, [], installed(everything(table)), BIG)
    assert configuration.key == Secret(KEY)
    report = serve_report(configuration, "printed")
    text = "\n".join(line for block in report.blocks for line in plain(block))
    for shown in (
        repr(configuration),
        str(configuration),
        repr(report),
        text,
        json.dumps(report.document()),
        *report.notes,
    ):
        assert KEY not in shown
    assert report.document()["env"]["VLLM_API_KEY"] == HIDDEN
    assert "# VLLM_API_KEY is set, from VLLM_API_KEY" in text


def test_errors_are_cleaned_of_the_key() -> None:
    error = ManyProblems("m " + KEY, [Problem(f"a {KEY}", f"/f/{KEY}", 1, f"h {KEY}", "value")], reason="value")
    error.hint = KEY
    hidden_error(error, Secret(KEY))
    assert KEY not in str(error) + repr(error) + str(error.hint) + repr(error.problems)
    assert error.problems[0].reason == "value" and error.problems[0].line == 1


def test_keys_are_found_even_where_they_are_wrong(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("another key in here")
    assert known_keys({"K": KEY}, "K", str(file)) == [Secret(KEY), Secret("another key in here")]
    assert known_keys({"K": "short"}, "K", "/nowhere") == []


def test_notes_and_obstacles_are_cleaned_too(table: Table) -> None:
    env = {"VLLM_API_KEY": KEY}
    made = resolve(table, "single", env, [], installed(everything(table)), BIG)
    odd = replace(made, notes=(f"note {KEY}",), obstacles=(Problem(f"stands {KEY}", hint=KEY, reason="machine"),))
    for outcome in ("printed", "refused"):
        report = serve_report(odd, outcome)
        assert KEY not in json.dumps(report.document()) and len(report.problems) == len(report.notes) == 1
        assert report.notes == ("note ***",) and report.problems[0].message == "stands ***"
