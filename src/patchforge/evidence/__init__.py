"""Has a patch landed upstream?  Independent signals from the trees alone, and a verdict with a confidence."""
