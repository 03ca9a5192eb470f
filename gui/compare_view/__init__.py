"""Comparisons: the variants of a pattern, measured over sizes, and the atomic operations of histograms."""
