"""Whole programs that use a GPU, run for the window in separate processes."""
