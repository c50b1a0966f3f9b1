"""Serving modes: from a mode's name, the environment and the command line to one server command."""
