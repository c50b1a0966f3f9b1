"""Taking patches in from mails, diffs and pull requests, and handing them out for ``git am``."""
