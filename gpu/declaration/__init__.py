"""Pattern declarations, and code that families of patterns share."""
