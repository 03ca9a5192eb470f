"""Launches of a grid: its batches, the orders in which they are tried, and the trials before."""
