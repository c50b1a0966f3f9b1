"""Whatever is asked for, it is served as the table says or refused; the key comes out of nothing."""

from __future__ import annotations

import string

from hypothesis import given, settings
from hypothesis import strategies as st
from place import BIG, KEY, everything, installed, shipped

from patchforge.errors import InputError, PatchforgeError
from patchforge.serving.machine import Machine
from patchforge.serving.resolve import resolve
from patchforge.serving.secret import Secret
from patchforge.serving.values import parse_value, show

TABLE = shipped()
HAVE = installed(everything(TABLE), variables=frozenset({"VLLM_API_KEY"}))
NAMES = [knob.name for knob in TABLE.knobs]
WORDS = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=30)


@given(
    name=WORDS | st.sampled_from(NAMES).map(str.lower) | st.sampled_from(NAMES).map(lambda n: n + "S"),
    value=WORDS,
    mode=st.sampled_from([m.name for m in TABLE.modes]),
)
@settings(max_examples=150, deadline=None)
def test_an_unknown_knob_is_never_accepted(name: str, value: str, mode: str) -> None:
    if name in NAMES:
        return
    try:
        resolve(TABLE, mode, {}, [(name, value)], HAVE, BIG)
    except InputError as error:
        assert name in str(error)
    else:
        raise AssertionError(f"{name} was accepted")


@st.composite
def settings_of_knobs(draw: st.DrawFn) -> dict[str, str]:
    chosen = draw(st.lists(st.sampled_from(TABLE.knobs), max_size=8, unique_by=lambda k: k.name))
    texts = {}
    for knob in chosen:
        if knob.kind == "boolean":
            value = draw(st.sampled_from(["0", "1", "yes", ""]))
        elif knob.kind == "choice":
            value = draw(st.sampled_from([str(v) for v in knob.values] + ["nothing"]))
        elif knob.kind in ("integer", "number"):
            assert knob.minimum is not None and knob.maximum is not None
            value = str(draw(st.integers(int(knob.minimum) - 1, int(knob.maximum) + 1)))
        else:
            value = draw(st.text(max_size=20) | st.sampled_from(["--host 0.0.0.0", "0.0.0.0", "--api-key x", KEY]))
        texts[knob.name] = value
    return texts


@given(
    env=settings_of_knobs(),
    mode=st.sampled_from([m.name for m in TABLE.modes]),
    keyed=st.booleans(),
    machine=st.sampled_from([BIG, Machine()]),
)
@settings(max_examples=300, deadline=None)
def test_what_is_accepted_is_closed_and_keyless(env: dict[str, str], mode: str, keyed: bool, machine: Machine) -> None:
    if keyed:
        env = {**env, "VLLM_API_KEY": KEY}
    try:
        made = resolve(TABLE, mode, env, [], HAVE, machine)
    except PatchforgeError as error:
        assert str(error)
        return
    host = made.argv[made.argv.index("--host") + 1]
    assert made.key is not None or host.startswith("127.") or host in ("::1", "localhost", "[::1]", "LOCALHOST")
    assert (made.key == Secret(KEY)) is keyed
    if keyed:
        assert not any(KEY in word for word in made.argv) and KEY not in repr(made)
    assert "" not in dict(made.env).values()
    extra = next(s.value or () for s in made.settings if s.name == "EXTRA_ARGS")
    ours = [word for word in made.argv[: len(made.argv) - len(extra)] if word.startswith("--")]
    assert len(ours) == len(set(ours)), "a flag stands twice"
    assert made.argv.count("--host") == 1 and not any(word.startswith("--api") for word in made.argv)


@given(knob=st.sampled_from(TABLE.knobs), text=st.text(max_size=40))
@settings(max_examples=250, deadline=None)
def test_a_value_reads_back_as_it_is_shown(knob, text) -> None:
    try:
        value = parse_value(knob, text)
    except ValueError:
        return
    if value is not None:
        assert parse_value(knob, show(value)) == value
