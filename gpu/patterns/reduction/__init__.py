"""Reduction: the declaration, and what it is measured beside."""
