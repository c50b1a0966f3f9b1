"""What a command found, as one frozen value, and the renderers that print it."""
