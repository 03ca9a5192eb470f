"""The program's files: kernels, assets and pages."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Folder that contains `gpu/`, `gui/`, `kernels/` and `assets/`."""

KERNELS = ROOT / "kernels"
ASSETS = ROOT / "assets"
DOCS = ROOT / "docs"
