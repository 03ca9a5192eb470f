"""Sort: the declaration, keys, and host programs."""
