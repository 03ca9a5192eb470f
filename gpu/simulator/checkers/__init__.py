"""Checkers: observers of the lockstep executor that detect errors."""
