"""The table of patches in PATCHES.md: made from the headers, checked byte for byte."""
