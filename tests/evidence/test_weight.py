"""What equal units weigh, what a release did itself, and what later patches owe to one that does not apply."""

from __future__ import annotations

import pytest
from test_truth import FIXED, OLD, diff, judged

from patchforge.evidence.definitions import definitions
from patchforge.evidence.weight import weighed
from patchforge.headers.probe import Probe

LOGGER = "from log import init\n\nlogger = init(__name__, level=None)\n"
WATCH = (
    LOGGER
    + """

class Watch:
    def look(self, now):
        if now - self.since > self.threshold:
            logger.warning("no step for %f s, %d waiting", now - self.since, self.waiting())
            self.warned = True
        return self.warned
"""
)
CALLER = "from base import Step\n\n\ndef step(engine):\n    return engine.step()\n"
CALLS = CALLER.replace("import Step\n", "import Step\nfrom watch import Watch\n").replace(
    "    return engine.step()\n", "    Watch().look(engine.now)\n    return engine.step()\n"
)
ELSEWHERE = CALLER.replace("engine.step()", "engine.run(engine.schedule())")


def both(new_caller: str) -> bytes:
    return diff("", WATCH, "watch.py").replace(b"--- a/watch.py", b"--- /dev/null") + diff(
        CALLER, new_caller, "caller.py"
    )


def test_a_line_that_every_module_has_does_not_make_a_patch_partial() -> None:
    new = {"caller.py": ELSEWHERE, "other.py": LOGGER, "third.py": LOGGER}
    (found,) = judged({"caller.py": CALLER}, new, both(CALLS))
    assert (found.verdict, [u.name for u in found.signals.units if u.state == "patched"]) == ("conflict", [])


def test_a_definition_that_says_something_is_found_elsewhere_and_makes_it_partial() -> None:
    new = {"caller.py": ELSEWHERE, "other.py": WATCH}
    (found,) = judged({"caller.py": CALLER}, new, both(CALLS))
    assert found.verdict == "partial"
    assert [u.moved for u in found.signals.units if u.name == "Watch.look"] == ["other.py"]


def test_an_equal_import_alone_does_not_make_a_large_patch_partial() -> None:
    old = "import os\n\n\ndef look(now):\n    return now\n"
    body = "".join(f"    total{n} = now * {n} + scale{n} - offset{n}\n" for n in range(12))
    patched = old.replace("import os\n", "import os\nimport time\n").replace(
        "    return now\n", body + "    return now\n"
    )
    new = old.replace("import os\n", "import os\nimport time\n").replace("    return now\n", "    return later(now)\n")
    (found,) = judged({"store.py": old}, {"store.py": new}, diff(old, patched))
    assert [u.state for u in found.signals.units] == ["patched", "other"]
    assert found.verdict == "conflict"


STRIP = "".join(
    f"""def read{n}(chunks, handler):
    for chunk in chunks:
        chunk = chunk.strip()
        if not chunk:
            continue
        handler.add(chunk, {n})


"""
    for n in range(3)
)
SPLIT = "def split(buffer):\n    return buffer.split(SEPARATOR)\n"
MENDED = STRIP.replace("        chunk = chunk.strip()\n        if not chunk:\n            continue\n", "")
MENDED_SPLIT = SPLIT.replace("buffer.split", "normal(buffer).drop(COMMENT).split")
UPSTREAM = STRIP.replace("        chunk = chunk.strip()\n", "")


def test_a_release_that_did_most_of_it_in_some_definitions_is_partial() -> None:
    (found,) = judged(
        {"store.py": STRIP + SPLIT}, {"store.py": UPSTREAM + SPLIT}, diff(STRIP + SPLIT, MENDED + MENDED_SPLIT)
    )
    assert (found.verdict, found.confidence) == ("partial", "low")
    assert "read0, read1, read2" in found.reason


def test_a_release_that_changed_the_lines_otherwise_is_not() -> None:
    other = STRIP.replace("handler.add(chunk", "handler.feed(chunk").replace("in chunks", "in reversed(chunks)")
    (found,) = judged(
        {"store.py": STRIP + SPLIT}, {"store.py": other + SPLIT}, diff(STRIP + SPLIT, MENDED + MENDED_SPLIT)
    )
    assert found.verdict == "conflict"


NAMED = OLD.replace(
    "return sorted(self.table)", "names = sorted(self.table)\n        return {'names': names, 'count': self.count}"
)
RENAMED = NAMED.replace("names = ", "keys = ").replace(": names", ": keys")


@pytest.mark.parametrize(("probe", "confidence"), [("'count': self.count", "medium"), ("", "low")])
def test_another_name_for_a_local_is_landed_changed_more_surely_with_a_probe(probe: str, confidence: str) -> None:
    probes = {"p0": Probe("source", "store.py", "Store.keys", probe)} if probe else {}
    (found,) = judged({"store.py": OLD}, {"store.py": RENAMED}, diff(OLD, NAMED), probes=probes)
    assert (found.verdict, found.confidence) == ("landed-changed", confidence)


def test_a_patch_on_what_an_unapplied_one_makes_names_it() -> None:
    made = OLD.replace("    def write", "    def size(self):\n        return len(self.table)\n\n    def write").replace(
        "data = self.table[key]", "data = self.load(key)"
    )
    later = made.replace("return len(self.table)", "return len(self.table) + self.pending")
    new = OLD.replace("data = self.table[key]", "data = self.fetch(key)").replace("def write", "def put")
    first, second = judged({"store.py": OLD}, {"store.py": new}, diff(OLD, made), diff(made, later))
    assert (first.verdict, second.verdict) == ("conflict", "conflict")
    assert "what p0 makes" in second.reason


def test_what_an_unapplied_patch_would_have_added_is_not_the_release_s_doing() -> None:
    made = OLD.replace(
        "        old = self.table.get(key)\n", "        self.last_key = key\n        old = self.table.get(key)\n"
    )
    later = made.replace("        self.last_key = key\n", "")
    new = OLD.replace("        old = self.table.get(key)\n", "        old = self.peek(key)\n")
    first, second = judged({"store.py": OLD}, {"store.py": new}, diff(OLD, made), diff(made, later))
    assert [u.did for u in second.signals.units] == [0]
    assert (first.verdict, second.verdict) == ("conflict", "conflict")


def test_a_patch_whose_lines_were_left_alone_says_so() -> None:
    new = OLD.replace("size = len(data)", "size = len(data) + 1").replace(
        "    def read(self, key):", "    def read(self, key, *, raw=False):"
    )
    patched = OLD.replace("        self.count += size\n", "        self.count += size\n        self.log(key)\n")
    (found,) = judged({"store.py": OLD}, {"store.py": new}, diff(OLD, patched))
    assert (found.verdict, found.signals.merge) == ("conflict", "changes")
    assert "left its lines alone" in found.reason


def test_words_are_counted_on_both_sides() -> None:
    old, patched, new = (
        (definitions(text.encode()) or {}).get("f")
        for text in ("def f(x):\n    return x.a\n", "def f(x):\n    return x.b(1)\n", "def f(x):\n    return x.b(2)\n")
    )
    assert weighed(old, patched, new) == (3, 2)  # a goes, b and 1 come; the release did the first two
    assert weighed(None, patched, None) == (5, 0)
    assert weighed(old, patched, patched) == (3, 3)


def test_the_fix_in_full_still_lands() -> None:
    (found,) = judged({"store.py": OLD}, {"store.py": FIXED}, diff(OLD, FIXED))
    assert (found.verdict, found.confidence) == ("landed", "high")


def test_a_table_that_grew_by_much_has_words_in_common_by_chance() -> None:
    table = "KNOBS = {\n" + "".join(f'    "K{n}": choice("K{n}", "0", ["0", "1"]),\n' for n in range(9)) + "}\n"
    patched = table.replace("}\n", '    "LOG": choice("LOG", "0", ["0", "1"]),\n}\n')
    new = table.replace(
        "KNOBS = {\n", "KNOBS = {\n" + "".join(f'    "N{n}": choice("N{n}", "0", ["0", "1"]),\n' for n in range(9))
    )
    new = new.replace('    "K8": choice("K8", "0", ["0", "1"]),\n', "")
    (found,) = judged({"store.py": table}, {"store.py": new}, diff(table, patched))
    assert [(unit.state, unit.did) for unit in found.signals.units] == [("other", 0)]
    assert found.verdict == "conflict"


SORTED = """def write(f):
    pick = sorted(set(formats()))
    names = sorted({x.upper() for x in pick})
    kinds = sorted(set(kinds_of(pick)))
    f.write(join(names, kinds))


"""
UNSORTED = (
    SORTED.replace("sorted(set(formats()))", "set(formats())")
    .replace("sorted({x.upper() for x in pick})", "{x.upper() for x in pick}")
    .replace("sorted(set(kinds_of(pick)))", "set(kinds_of(pick))")
)
HEADERS = "".join(f"    f.header(title{n}, style{n}, width=columns{n})\n" for n in range(20))


@pytest.mark.parametrize(("call", "expected"), [("sorted(", ("partial", "low")), ("order(", ("conflict", "medium"))])
def test_added_lines_that_stand_there_are_seen_however_much_else_changed(call: str, expected: tuple[str, str]) -> None:
    new = (
        SORTED.replace("sorted(", call)
        .replace("    f.write", f"{HEADERS}    f.write")
        .replace("(f):\n", "(f):\n    f.begin()\n")
    )
    patch = diff(UNSORTED + SPLIT, SORTED + MENDED_SPLIT)
    (found,) = judged({"store.py": UNSORTED + SPLIT}, {"store.py": new + SPLIT}, patch)
    assert (found.verdict, found.confidence) == expected
