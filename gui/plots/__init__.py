"""Plots that are pointed at: one base, and what is drawn on it."""
