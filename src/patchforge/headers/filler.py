"""The sentences that stand where a person has still to say why; a header check refuses them."""

from __future__ import annotations

PROSE = "Why this patch is here."
"""What ``import`` writes when the mail has no text."""
TEMPLATE = (
    "Why the patch exists: what was wrong and how it shows, why it is mended this way, and what it leaves alone.",
    PROSE,
)
"""Every such sentence, that of ``templates/commit`` first."""


def is_filler(preamble: str) -> bool:
    """True when ``preamble`` says nothing but such a sentence."""
    return " ".join(preamble.split()) in TEMPLATE
