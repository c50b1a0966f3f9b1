"""What an interrupted run left behind, brought to its end before anything else is done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from patchforge.errors import TreeError
from patchforge.tree.journal import COMMIT, MAX_JOURNAL, PREPARE, Journal, Op, parse_journal, temp_name
from patchforge.tree.record import Record, Row, to_record
from patchforge.tree.transaction import Transaction, parent

_SHOWN = 8


def pending(transaction: Transaction) -> str | None:
    """``commit`` or ``prepare`` when an interrupted run left its journal, without touching anything."""
    for name, word in ((COMMIT, "commit"), (PREPARE, "prepare")):
        if transaction.root.exists(transaction.journal_path(name)):
            return word
    return None


def recover(transaction: Transaction) -> str | None:
    """Finish or roll back what an interrupted run left; say what was done, or ``None`` when nothing was left.

    Raises :class:`TreeError`, reason ``journal``, when the tree was changed so that it can be neither.
    """
    said = [_decided(transaction), _prepared(transaction)]
    return "; ".join(word for word in said if word) or None


def _read(transaction: Transaction, name: str) -> Journal | None:
    path = transaction.journal_path(name)
    found = transaction.root.read(path, MAX_JOURNAL)
    return None if found is None else parse_journal(found.data, transaction.prefix, transaction.home)


def _prepared(transaction: Transaction) -> str | None:
    try:
        journal = _read(transaction, PREPARE)
    except ValueError:
        # The journal is flushed before anything else is written, so nothing else was.
        with _told("an interrupted run left a journal that cannot be removed"):
            transaction.disk.remove(transaction.journal_path(PREPARE))
        return "an interrupted run had changed nothing; its journal was removed"
    if journal is None:
        return None
    with _told("an interrupted run could not be rolled back"):
        transaction.roll_back(journal)
    return f"an interrupted run was rolled back: {journal.what}"


def _decided(transaction: Transaction) -> str | None:
    path = transaction.journal_path(COMMIT)
    try:
        journal = _read(transaction, COMMIT)
    except ValueError as error:
        raise TreeError(
            f"the journal of an interrupted run cannot be believed ({error})",
            reason="journal",
            file=path,
            hint="reinstall the distribution, delete this file, then apply again",
        ) from None
    if journal is None:
        return None
    wrong = [op.path for op in journal.ops if not _can_finish(transaction, op)]
    if not wrong:
        transaction.finish(journal)
        return f"an interrupted run was finished: {journal.what} ({len(journal.ops)} files)"
    if _consistent(transaction, journal):
        _abandon(transaction, journal)
        return f"an interrupted run was dropped, because its files were put back or reinstalled: {journal.what}"
    listed = ", ".join(wrong[:_SHOWN]) + (f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")
    raise TreeError(
        f"changed by someone else while a change was half done: {listed}",
        reason="journal",
        file=wrong[0],
        hint="reinstall the distribution (or restore the tree from its source), then apply again",
    )


def _hash(transaction: Transaction, path: str) -> str | None:
    found = transaction.root.read(path)
    return None if found is None else found.sha256


def _can_finish(transaction: Transaction, op: Op) -> bool:
    """The file is as before and what shall replace it is ready, or it has been replaced."""
    now = _hash(transaction, op.path)
    if op.after is None:
        return now in (None, op.before)
    waiting = _hash(transaction, temp_name(op.path))
    return now == op.after if waiting is None else waiting == op.after and now in (op.before, op.after)


def _consistent(transaction: Transaction, journal: Journal) -> bool:
    """The files are those the installer left, or as they were before the change, so that the change can be forgotten."""
    rows = _rows(transaction, journal)
    return all(_is_settled(transaction, op, rows) for op in journal.ops)


def _rows(transaction: Transaction, journal: Journal) -> dict[str, Row] | None:
    """What RECORD says now of the journal's files; ``None`` for a bare tree."""
    if not transaction.home:
        return None
    found = transaction.root.read(f"{transaction.home}/RECORD")
    return Record(found.data if found else b"").find({op.path for op in journal.ops})


def _is_settled(transaction: Transaction, op: Op, rows: dict[str, Row] | None) -> bool:
    now = _hash(transaction, op.path)
    if rows is None:
        return now in (op.before, None if op.before else op.after)
    if op.path == f"{transaction.home}/RECORD":
        return now is not None
    row = rows.get(op.path)
    if row is None:
        return now in (None, op.before, op.after)  # left over from us, where it is there at all
    return now is not None and to_record(now) == row.hash


def _abandon(transaction: Transaction, journal: Journal) -> None:
    """Remove the files of ours that a reinstallation has left over, then the journal."""
    rows = _rows(transaction, journal)
    with _told("an interrupted run could not be cleared away"):
        emptied = set()
        for op in journal.ops:
            ours = op.before is None if rows is None else op.path not in rows
            if ours and op.path != f"{transaction.home}/RECORD":
                transaction.disk.remove(op.path)
                emptied.add(parent(op.path))
        transaction.prune(emptied)
        # From here on it is an undecided change like any other.
        commit, prepare = (transaction.journal_path(name) for name in (COMMIT, PREPARE))
        transaction.disk.rename(commit, prepare, "took back")
        transaction.roll_back(journal)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn an :class:`OSError` into one for the user."""
    try:
        yield
    except OSError as error:
        raise TreeError(
            f"{what}: {error.strerror or error}",
            reason="write",
            file=error.filename,
            hint="mend that, then run it again",
        ) from error
