"""Simulated CUDA driver: flat device memory, launches, attributes, and the journal of launches."""
