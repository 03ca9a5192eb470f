"""General-purpose widgets: forms, grids, messages."""
