"""Handlers of the window's requests, by subject."""
