"""Histogram: the declaration, and what is counted."""
