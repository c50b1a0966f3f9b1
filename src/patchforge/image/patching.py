"""The patch layer: what ``patchforge apply`` writes to the base's tree, and nothing else.

The touched files and the dist-info are laid out in a temporary directory, the series is applied there by the same code that
applies it anywhere, and what changed becomes the layer.  So a container's tree is the one ``apply`` would have made in it.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from patchforge.engine.apply import Applied, ApplyOptions, apply_series, failures
from patchforge.errors import Refused
from patchforge.image.installed import Found
from patchforge.image.layer import Entry, Layer, make_layer, parents, whiteout
from patchforge.image.scan import Node
from patchforge.releases.reading import wheel_files
from patchforge.series.parsed import Schema
from patchforge.series.project import Series
from patchforge.tree.locate import Installed
from patchforge.tree.state import NAME
from patchforge.tree.target import open_installed


def patch_layer(
    series: Series, schema: Schema, nodes: Mapping[str, Node], found: Found, wheel: Path, bytecode: str
) -> tuple[Layer, Applied]:
    """The layer that turns the base's pristine tree into the patched one, and what applying the series said.

    ``bytecode`` ``checked-hash`` adds bytecode of the changed modules, compiled by the running interpreter.  Raises
    :class:`Refused` with the engine's own reason when a patch does not land.
    """
    assert series.pin is not None and series.lock is not None
    root = series.pin.root
    with tempfile.TemporaryDirectory(prefix="patchforge-") as folder:
        site = Path(folder) / "site"
        touched = [file.path for file in series.lock.files]
        _lay_out(site, root, touched, nodes, found, wheel)
        installed = Installed(site, found.info, found.distribution, found.version)
        with open_installed(installed, root, write=True) as target:
            done = apply_series(series, target, schema, ApplyOptions())
        if done.status or done.outcome != "applied":
            raise _refused(done)
        changed = [f"{root}/{path}" for path in done.changed]
        written = [*changed, f"{found.info}/RECORD", f"{found.info}/{NAME}"]
        entries = [_entry(site, found.site, path, nodes) for path in written]
        entries += _bytecode(site, found.site, changed, nodes, bytecode)
        entries = _whole_folders(entries, nodes, f"{found.site}/{root}")
    return make_layer("patches", with_parents(entries, nodes)), done


def _lay_out(site: Path, root: str, touched: list[str], nodes: Mapping[str, Node], found: Found, wheel: Path) -> None:
    read = wheel_files(wheel, root)
    for path in touched:
        node, pristine = nodes.get(f"{found.site}/{root}/{path}"), read(path)
        if pristine is None:
            if node is not None:
                raise Refused(
                    f"{root}/{path} stands in the base where the series makes a new file", reason="base-not-pristine"
                )
            continue
        assert node is not None  # the whole wheel was proved to be there
        _write(site / root / path, pristine[0], node.mode)
    info = f"{found.metadata}/"
    for path, node in nodes.items():
        if path.startswith(info) and node.data is not None:
            _write(site / found.info / path.removeprefix(info), node.data, node.mode)
    (site / root).mkdir(parents=True, exist_ok=True)


def _write(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode | 0o600)


def _refused(done: Applied) -> Refused:
    for failure in failures(done):
        place = f"{failure.file}: " if failure.file else ""
        return Refused(
            f"{failure.patch} does not land: {place}{failure.message}",
            reason=failure.reason,
            file=failure.patch_file,
            line=failure.line,
            hint=failure.hint,
            patch=failure.patch,
        )
    problem = done.problems[0]
    return Refused(problem.message, reason=problem.reason, file=problem.file, line=problem.line, hint=problem.hint)


def _entry(site: Path, inside: str, path: str, nodes: Mapping[str, Node]) -> Entry:
    """The changed file ``path`` as the layer holds it; permission bits are the base's, the owner is root."""
    place, full = site / path, f"{inside}/{path}"
    if not place.exists():
        return Entry(full, "gone")
    executable, old = bool(place.stat().st_mode & 0o100), nodes.get(full)
    mode = 0o755 if executable else 0o644
    if old is not None and bool(old.mode & 0o100) == executable:
        mode = old.mode
    return Entry(full, "file", place.read_bytes(), mode)


def _bytecode(site: Path, inside: str, changed: list[str], nodes: Mapping[str, Node], bytecode: str) -> list[Entry]:
    """Whiteouts for the base's bytecode of changed modules, which could be run instead of the patched source."""
    out: dict[str, Entry] = {}
    modules = [path for path in changed if path.endswith(".py")]
    wanted = {(f"{inside}/{p.rpartition('/')[0]}", p.rpartition("/")[2][:-3]) for p in modules}
    for path in nodes:
        if not path.endswith(".pyc"):
            continue
        folder, _, name = path.rpartition("/")
        cached = folder.removesuffix("/__pycache__")
        stem = name.partition(".")[0] if cached != folder else name[:-4]
        if (cached, stem) in wanted:
            out[path] = Entry(path, "gone")
    if bytecode == "checked-hash":
        for entry in _compiled(site, inside, [path for path in modules if (site / path).exists()]):
            out[entry.path] = entry
    return list(out.values())


def _compiled(site: Path, inside: str, modules: list[str]) -> list[Entry]:
    """Bytecode that names each source by its path in the image and is checked against its content at every import.

    A fresh interpreter compiles: what else this process has loaded would show in the bytes.
    """
    import importlib.util
    import subprocess
    import sys

    if not modules:
        return []
    command = [sys.executable, "-I", "-m", "compileall", "-q", "-f", "--invalidation-mode", "checked-hash"]
    command += ["-s", str(site), "-p", f"/{inside}", *(str(site / path) for path in sorted(modules))]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    out = []
    for path in modules:
        cached = importlib.util.cache_from_source(path, optimization="")
        out.append(Entry(f"{inside}/{cached}", "file", (site / cached).read_bytes()))
    return out


def _whole_folders(entries: list[Entry], nodes: Mapping[str, Node], top: str) -> list[Entry]:
    """Directories of which nothing is left go as well, as they do when the series is applied to a tree."""
    gone = {entry.path for entry in entries if entry.kind == "gone"}
    kept = {folder for entry in entries if entry.kind != "gone" for folder in parents(entry.path)}
    for path in sorted(gone):
        folder = path.rpartition("/")[0]
        while folder.startswith(f"{top}/") and folder not in kept:
            below = [p for p, node in nodes.items() if p.startswith(f"{folder}/") and node.kind != "dir"]
            if not all(any(p == g or p.startswith(f"{g}/") for g in gone) for p in below):
                break
            gone.add(folder)
            folder = folder.rpartition("/")[0]
    inner = {path for path in gone if any(folder in gone for folder in parents(path))}
    return [entry for entry in entries if entry.kind != "gone"] + [Entry(path, "gone") for path in sorted(gone - inner)]


def with_parents(entries: list[Entry], nodes: Mapping[str, Node]) -> list[Entry]:
    """``entries`` and every directory above them, as the base has it: without, an unpacker invents modes and owners."""
    have = {entry.path for entry in entries}
    out = list(entries)
    for entry in entries:
        for folder in parents(entry.path):
            if folder in have:
                continue
            have.add(folder)
            node = nodes.get(folder)
            if node is not None and node.kind == "link":
                raise Refused(f"/{folder} is a symbolic link in the base", reason="path")
            own = (node.mode, node.uid, node.gid) if node is not None and node.kind == "dir" else (0o755, 0, 0)
            out.append(Entry(folder, "dir", b"", *own))
    return out


def check_layer(entries: Mapping[str, tuple[str, bytes]], series: Series, inside: str) -> int:
    """Compare an unpacked layer, ``path: (kind, data)``, with the lock; return the number of files.

    Raises :class:`Refused` (``tree-mismatch``) for the first that differs.
    """
    assert series.pin is not None and series.lock is not None
    checked = 0
    for locked in series.lock.files:
        if locked.before == locked.after:
            continue
        path = f"{inside}/{series.pin.root}/{locked.path}"
        if locked.after is None:
            right = any(whiteout(hidden) in entries for hidden in (path, *parents(path)))
        else:
            kind, data = entries.get(path, ("", b""))
            right = kind == "file" and hashlib.sha256(data).hexdigest() == locked.after
        if not right:
            raise Refused(
                f"the layer's {locked.path} is not what lock.toml says", reason="tree-mismatch", file=series.lock_label
            )
        checked += 1
    return checked
