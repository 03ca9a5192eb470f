"""Sampled blocks of a launch: their paths, caches, and the traffic of the whole grid."""
