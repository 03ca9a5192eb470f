"""Two recordings beside each other, on one time line."""
