"""Taking retired patches out of the project, with a record of where they went."""

from __future__ import annotations

from patchforge.branch.derived import Files
from patchforge.branch.rearrange import find, without
from patchforge.engine.model import Reader
from patchforge.errors import InputError, Refused
from patchforge.series.parsed import Schema, header_of
from patchforge.series.project import Series
from patchforge.table.document import NAME
from patchforge.table.retired import Retired, recorded


def retired(series: Series, reasons: dict[str, str], release: str, read: Reader, schema: Schema) -> Files:
    """The files of the project without the patches of ``reasons`` (name to why), which ``release`` made unnecessary.

    Raises :class:`Refused` when what is left does not apply to the pin.
    """
    assert series.project is not None and series.pin is not None
    going = [find(series, name) for name in reasons]
    try:
        files = without(series, going, read, schema)
    except InputError as error:
        raise Refused(
            f"nothing was dropped: without {', '.join(reasons)} the series does not apply to its pin: {error.message}",
            reason=error.reason,
            file=error.file,
            line=error.line,
            hint="port the patch that needs it, or drop them one by one with 'patchforge drop'",
        ) from error
    document = files.get(NAME)
    if document is None:
        if not (series.project / NAME).is_file():
            return files
        document = (series.project / NAME).read_bytes()
    gone = [Retired(p.name, header_of(p), release, reasons[p.name]) for p in going]
    files[NAME] = recorded(document.decode("utf-8"), series.pin.id, gone).encode()
    return files
