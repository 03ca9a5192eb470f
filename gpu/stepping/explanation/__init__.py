"""Explanations of an event of a thread."""
