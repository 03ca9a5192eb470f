"""Whole programs that use a GPU, run for the window in a process of their own."""
