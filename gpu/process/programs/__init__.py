"""Whole programs of untrusted authors: their processes, and what these may do."""
