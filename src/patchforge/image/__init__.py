"""A pinned image of a patched distribution: layers, configuration, build context, and what proves them."""
