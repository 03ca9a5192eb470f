"""Requests executed in the calling process, from the input to a verified result and files."""
