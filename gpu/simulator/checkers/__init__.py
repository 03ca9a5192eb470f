"""Observers that find mistakes."""
