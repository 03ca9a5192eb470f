"""Runs the IR over lanes in lockstep, and tells observers."""
