"""Which patch truly needs which: lines, files and names, found by planning the series on a real tree."""
