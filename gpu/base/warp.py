"""The warp size, shared by the simulator, the patterns and the window."""

from __future__ import annotations

WARP = 32
"""Lanes per warp, on every GPU that supports CUDA."""
