"""Observers of the lockstep executor that count operations and memory traffic."""
