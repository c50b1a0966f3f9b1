"""``python -m patchforge``."""

from patchforge.cli import main

main()
