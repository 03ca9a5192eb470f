"""Checkers of memory: the heap, lifetimes, and values that were never written."""
