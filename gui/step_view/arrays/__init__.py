"""Arrays as grids of values, with what the statement touches."""
