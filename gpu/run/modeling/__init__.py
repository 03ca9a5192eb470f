"""Requests for modeled times."""
