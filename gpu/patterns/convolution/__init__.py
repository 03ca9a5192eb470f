"""Convolution: the declaration, and filters."""
