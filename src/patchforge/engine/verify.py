"""What is installed, per patch and per file, by comparing hashes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from patchforge.errors import Problem, TreeError
from patchforge.series.lock import Lock
from patchforge.series.project import Series
from patchforge.tree.state import State
from patchforge.tree.target import Target

APPLIED, PRISTINE, PARTLY, ALTERED, MISSING = "applied", "pristine", "partly", "altered", "missing"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One touched file.  ``result``: ``applied``, ``pristine``, ``partly``, ``altered`` or ``missing``.

    ``upto`` is the last patch whose outcome the bytes are, for ``partly``; ``detail`` says more for people; ``ours``: the bytes
    are those of a series applied before.
    """

    path: str
    result: str
    upto: str | None = None
    detail: str = ""
    ours: bool = False


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """One patch: its ``result`` over all its files, the files that are not right, and the hunks that are in."""

    name: str
    result: str
    files: tuple[FileStatus, ...]
    hunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """The whole tree: ``result`` is ``applied``, ``pristine``, ``partly``, ``altered`` or ``empty`` (no patches).

    ``source`` says what the tree was compared with: ``lock``, ``state`` or ``patches``.
    """

    result: str
    source: str
    patches: tuple[PatchStatus, ...]
    files: tuple[FileStatus, ...]
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """What one file hashes to: before the series, and after each patch that touches it, in order."""

    before: str | None
    steps: tuple[tuple[str, str | None], ...]
    executable: bool | None = None

    @property
    def after(self) -> str | None:
        """The hash after the whole series."""
        return self.steps[-1][1] if self.steps else self.before


def lock_chains(lock: Lock) -> dict[str, Chain]:
    """The chains of a lock, by path."""
    steps: dict[str, list[tuple[str, str | None]]] = {file.path: [] for file in lock.files}
    for patch in lock.patches:
        final: dict[str, str | None] = {}
        for step in patch.steps:
            if step.gone is not None:
                final[step.gone] = None
            final[step.path] = step.after
        for path, sha in final.items():
            steps.setdefault(path, []).append((patch.name, sha))
    return {f.path: Chain(f.before, tuple(steps[f.path]), f.executable if f.after else None) for f in lock.files}


def state_chains(state: State) -> dict[str, Chain]:
    """The chains of a state file, by path."""
    steps: dict[str, list[tuple[str, str | None]]] = {file.path: [] for file in state.files}
    for patch in state.patches:
        for path, sha in patch.files:
            if path in steps:
                steps[path].append((patch.name, sha))
    return {f.path: Chain(f.before, tuple(steps[f.path])) for f in state.files}


def verify(series: Series, target: Target) -> Verified:
    """Compare ``target`` with the lock of ``series``, or with its own state when the lock is missing or stale."""
    notes: list[str] = [target.recovered] if target.recovered else []
    problems: list[Problem] = []
    state = target.state
    names = [p.name for p in series.patches]
    if target.reinstalled:
        notes.append("the distribution was reinstalled after the series was applied: the state file is a leftover")
    if series.lock is not None and series.lock_is_current:
        source, chains = "lock", lock_chains(series.lock)
    elif state is not None and state.series == series.sha256:
        source, chains = "state", state_chains(state)
        notes.append(_no_lock(series))
    else:
        if series.pin is not None:
            notes.append(_no_lock(series))
        from patchforge.engine.bare import by_patches

        return by_patches(series, target, notes)
    if state is not None and state.series != series.sha256:
        have = [p.name for p in state.patches]
        if state.upto is not None and have == names[: len(have)]:
            notes.append(f"the series is applied up to {state.upto} ({len(have)} of {len(names)} patches)")
        else:
            notes.append(f"another series is applied ({len(have)} patches); 'patchforge apply' replaces it")
    if state is not None and not target.reinstalled:
        problems += _left(target, state, chains, set(names))
    files = {path: file_status(target, path, chain) for path, chain in sorted(chains.items())}
    if state is not None and state.series != series.sha256:
        files = {path: _ours(target, status, state) for path, status in files.items()}
    patches = tuple(_patch_status(series, target, name, chains, files) for name in names)
    if (
        state is None
        and source == "lock"
        and not target.reinstalled
        and _all(patches, APPLIED)
        and target.info is not None
    ):
        notes.append("the bytes are those of the lock, and no state file says who put them there")
    problems += _bad_record(target, chains, files)
    return Verified(_overall(patches, problems), source, patches, tuple(files.values()), tuple(problems), tuple(notes))


def _ours(target: Target, status: FileStatus, state: State) -> FileStatus:
    """``status``, unless the file is what another series, or this one as it was, has made of it."""
    touched = state.file(status.path)
    if status.result not in (ALTERED, MISSING) or touched is None:
        return status
    try:
        found = target.read(status.path)
    except TreeError:
        return status
    if (None if found is None else found.sha256) != touched.after:
        return status
    return FileStatus(status.path, ALTERED, detail="as the series applied before left it", ours=True)


def _left(target: Target, state: State, chains: dict[str, Chain], names: set[str]) -> list[Problem]:
    """Files that a series applied before changed, that this one leaves alone, and that are not pristine."""
    out = []
    for file in state.files:
        if file.path in chains:
            continue
        found = target.read(file.path)
        if (None if found is None else found.sha256) != file.before:
            by = [
                p.name for p in state.patches if p.name not in names and any(path == file.path for path, _ in p.files)
            ]
            out.append(
                Problem(
                    f"changed by {', '.join(by) or 'a patch'}, which this series does not have",
                    file.path,
                    None,
                    "'patchforge apply' brings the tree to this series",
                    "altered",
                )
            )
    return out


def _no_lock(series: Series) -> str:
    if series.lock is None:
        return "there is no lock.toml: write it with 'patchforge lock'"
    return "lock.toml was made from other patches: write it again with 'patchforge lock'"


def _all(patches: tuple[PatchStatus, ...], result: str) -> bool:
    return bool(patches) and all(patch.result == result for patch in patches)


def _overall(patches: tuple[PatchStatus, ...], problems: list[Problem]) -> str:
    if problems:
        return ALTERED
    if not patches:
        return "empty"
    results = {patch.result for patch in patches}
    if ALTERED in results:
        return ALTERED
    return results.pop() if len(results) == 1 else PARTLY


def file_status(target: Target, path: str, chain: Chain) -> FileStatus:
    """Where on its chain the file at ``path`` is."""
    try:
        found = target.read(path)
    except TreeError as error:
        return FileStatus(path, ALTERED, detail=error.message)
    have = None if found is None else found.sha256
    if have == chain.after:
        if found is not None and chain.executable is not None and found.executable != chain.executable:
            early = _before_the_mode(chain)
            if early is not None:
                name, result = early
                return FileStatus(path, result, name or None, f"patched up to {name}" if name else "")
            now = "is" if found.executable else "is not"
            return FileStatus(path, ALTERED, detail=f"right bytes, wrong mode: it {now} executable")
        return FileStatus(path, APPLIED)
    if have == chain.before:
        return FileStatus(path, PRISTINE)
    for name, sha in reversed(chain.steps):
        if have == sha:
            return FileStatus(path, PARTLY, name, f"patched up to {name}")
    if have is None:
        return FileStatus(path, MISSING, detail="the file is missing")
    return FileStatus(path, ALTERED, detail="neither pristine nor the outcome of any patch")


def _before_the_mode(chain: Chain) -> tuple[str, str] | None:
    """Where on its chain a file stands whose bytes are those of the end and whose mode is not: before the last patches, when
    they change nothing but the mode."""
    shas = [chain.before, *(sha for _, sha in chain.steps)]
    first = len(shas) - 1
    while first and shas[first - 1] == chain.after:
        first -= 1
    if first == len(shas) - 1:
        return None
    return (chain.steps[first - 1][0], PARTLY) if first else ("", PRISTINE)


def _patch_status(
    series: Series, target: Target, name: str, chains: dict[str, Chain], files: dict[str, FileStatus]
) -> PatchStatus:
    mine = [path for path, chain in chains.items() if any(step == name for step, _ in chain.steps)]
    found: list[FileStatus] = []
    for path in mine:
        status, chain = files[path], chains[path]
        if status.result != PARTLY:
            found.append(status)
            continue
        order = [step for step, _ in chain.steps]
        reached = order.index(status.upto or "") >= order.index(name)
        found.append(FileStatus(path, APPLIED if reached else PRISTINE, detail=status.detail))
    results = {status.result for status in found}
    if results <= {APPLIED}:
        return PatchStatus(name, APPLIED, tuple(found))
    if results == {PRISTINE}:
        return PatchStatus(name, PRISTINE, tuple(found))
    if not results & {ALTERED, MISSING}:
        return PatchStatus(name, PARTLY, tuple(found))
    from patchforge.engine.hunkstate import hunks_present  # only here are patches read: a right tree needs hashes alone

    hunks, some, every = hunks_present(series, target, name, {s.path for s in found if s.result == ALTERED})
    partly = some and not every
    return PatchStatus(name, PARTLY if partly else ALTERED, tuple(found), hunks)


def _bad_record(target: Target, chains: dict[str, Chain], files: dict[str, FileStatus]) -> list[Problem]:
    """RECORD must say of every touched file what its right bytes are, or pip would not know what it uninstalls."""
    if target.info is None:
        return []
    from patchforge.tree.record import to_record

    rows = target.record().find({target.full(path) for path in chains})
    problems = []
    for path, chain in chains.items():
        if files[path].result not in (APPLIED, PRISTINE):
            continue
        want = chain.after if files[path].result == APPLIED else chain.before
        row = rows.get(target.full(path))
        if (row is None) != (want is None) or (row and want and row.hash and row.hash != to_record(want)):
            problems.append(
                Problem(
                    f"RECORD does not list {path} as it is",
                    f"{target.info}/RECORD",
                    None,
                    "someone rewrote RECORD: reinstall the distribution, then apply again",
                    "record",
                )
            )
    return problems


def full_check(target: Target, skip: set[str]) -> list[Problem]:
    """Hash every file RECORD lists, but those of ``skip`` (paths in the tree), and name what is not as installed."""
    from patchforge.tree.record import to_record

    assert target.info is not None
    problems = []
    own = {target.full(path) for path in skip} | {f"{target.info}/RECORD"}
    for path, row in target.record().rows().items():
        if path in own or not row.hash.startswith("sha256="):
            continue
        parts = path.split("/")
        if ".." in parts or path.startswith("/"):
            continue  # scripts outside site-packages, which a series never touches
        try:
            found = target.root.read(path)
        except TreeError as error:
            problems.append(Problem(error.message, path, reason="altered"))
            continue
        if found is None:
            problems.append(Problem(f"{path} is missing", path, reason="missing"))
        elif to_record(hashlib.sha256(found.data).hexdigest()) != row.hash:
            problems.append(Problem(f"{path} is not as it was installed", path, reason="altered"))
    return problems
