"""Arrays as grids of values, with the elements that the current statement accesses."""
