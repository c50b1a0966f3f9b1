"""The values a parsed patch consists of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk.

    ``old`` and ``new`` are the two sides as lines without their ``\\n``.  ``old_eof``/``new_eof`` say that
    the side's last line carries no newline and so must be the end of the file.  ``body`` keeps the lines as
    ``(op, text)`` for reports and reversal; ``op`` is one of ``b' '``, ``b'-'``, ``b'+'``.
    """

    line: int
    old_start: int
    old_len: int
    new_start: int
    new_len: int
    section: bytes
    body: tuple[tuple[bytes, bytes], ...]
    old: list[bytes]
    new: list[bytes]
    old_eof: bool
    new_eof: bool
    leading: int
    trailing: int
    stripped_blanks: tuple[int, ...] = ()

    @property
    def added(self) -> int:
        """Number of ``+`` lines."""
        return self.new_len - sum(1 for op, _ in self.body if op == b" ")

    @property
    def removed(self) -> int:
        """Number of ``-`` lines."""
        return self.old_len - sum(1 for op, _ in self.body if op == b" ")

    @property
    def zero_context(self) -> bool:
        """True when no context line proves the place."""
        return self.leading == 0 and self.trailing == 0 and all(op != b" " for op, _ in self.body)

    def reversed(self) -> Hunk:
        """The hunk that undoes this one."""
        swap = {b" ": b" ", b"-": b"+", b"+": b"-"}
        return Hunk(
            line=self.line,
            old_start=self.new_start,
            old_len=self.new_len,
            new_start=self.old_start,
            new_len=self.old_len,
            section=self.section,
            body=tuple((swap[op], text) for op, text in self.body),
            old=self.new,
            new=self.old,
            old_eof=self.new_eof,
            new_eof=self.old_eof,
            leading=self.leading,
            trailing=self.trailing,
        )

    def added_blocks(self) -> list[list[bytes]]:
        """The maximal runs of added lines."""
        blocks: list[list[bytes]] = []
        run: list[bytes] = []
        for op, text in self.body:
            if op == b"+":
                run.append(text)
            elif run:
                blocks.append(run)
                run = []
        if run:
            blocks.append(run)
        return blocks


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What a patch does to one file.

    ``action`` is ``modify``, ``create``, ``delete``, ``rename`` or ``copy``, or, only where a copy is turned round,
    ``discard`` (a deletion that does not say what is deleted); paths are relative to the tree, after stripping, with ``/``.
    Modes are ``None`` or one of ``0o100644`` and ``0o100755``.
    """

    line: int
    action: str
    old_path: str | None
    new_path: str | None
    old_mode: int | None
    new_mode: int | None
    hunks: tuple[Hunk, ...]
    git: bool
    old_id: str | None = None
    new_id: str | None = None

    @property
    def path(self) -> str:
        """The path that names this change in messages: the new one, or the old one of a deletion."""
        path = self.new_path if self.new_path is not None else self.old_path
        assert path is not None
        return path

    def reversed(self) -> FileDiff:
        """The change that undoes this one; that of a copy discards its target, whose bytes only the source knows."""
        action = {"create": "delete", "delete": "create"}.get(self.action, self.action)
        if self.action == "copy":
            return replace(self, action="discard", old_path=self.new_path, new_path=None, hunks=())
        return replace(
            self,
            action=action,
            old_path=self.new_path,
            new_path=self.old_path,
            old_mode=self.new_mode,
            new_mode=self.old_mode,
            old_id=self.new_id,
            new_id=self.old_id,
            hunks=tuple(h.reversed() for h in self.hunks),
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a patch file that applies but that ``lint`` mentions."""

    reason: str
    line: int
    message: str
    hint: str = ""
    severity: str = "warning"


@dataclass(frozen=True, slots=True)
class Patch:
    """A parsed patch file: the text before the diff and the changes in order.

    ``name`` is the patch's name in its series, ``label`` the file as messages show it.
    """

    name: str
    label: str
    text: bytes
    diff_line: int
    files: tuple[FileDiff, ...]
    findings: tuple[Finding, ...] = field(default_factory=tuple)
