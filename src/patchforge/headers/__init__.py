"""The header paragraph of a patch: text to values, checked against the schema.  Pure: no file is read."""

from patchforge.headers.conditions import Condition, parse_retires
from patchforge.headers.paragraph import Field, Header, parse_header
from patchforge.headers.upstream import Upstream, parse_upstream

__all__ = ["Condition", "Field", "Header", "Upstream", "parse_header", "parse_retires", "parse_upstream"]
