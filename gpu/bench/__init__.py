"""Benchmarks: every variant is verified, then timed in the same run as its peers."""
