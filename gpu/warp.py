"""The warp: what the simulator, the patterns' launches and the window's pictures agree on."""

from __future__ import annotations

WARP = 32
"""Lanes of a warp, on every GPU that CUDA runs on."""
