"""Analyses of PTX: control flow, slices, chains of loads, and tiles."""
