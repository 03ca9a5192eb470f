"""Definitions that every package uses: errors, warps and lane masks, paths, limits, child processes."""
