"""A series as a git branch, one commit per patch, and back."""
