"""The program's files: kernels, assets and pages; and whether they are a checkout or an installed package."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Folder that contains `gpu/`, `gui/`, `kernels/` and `assets/`."""

KERNELS = ROOT / "kernels"
ASSETS = ROOT / "assets"
DOCS = ROOT / "docs"

PACKAGE_FOLDER = "_app"
"""Name of ROOT within the installed package `lockstep`."""

IS_INSTALLED = ROOT.name == PACKAGE_FOLDER
"""Whether this is an installed package, not a checkout."""
