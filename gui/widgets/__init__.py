"""Widgets that know nothing of Lockstep: forms, grids, messages."""
