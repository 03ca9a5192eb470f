"""Comparison of the timing model with public measurements of public programs on a GPU that is not at hand."""
