"""Folders outside the installation in which Lockstep writes: settings, data and cache. Nothing else is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def settings_file() -> Path:
    """Return the path of the window's settings: in the platform's folder, or the one that LOCKSTEP_SETTINGS names."""
    if "LOCKSTEP_SETTINGS" in os.environ:
        return Path(os.environ["LOCKSTEP_SETTINGS"])
    return platformdirs.user_config_path("Lockstep", appauthor=False) / "settings.json"


def data_folder() -> Path:
    """Return the platform's folder for data: drafts, and PyCUDA's Python files of an installed package."""
    return platformdirs.user_data_path("Lockstep", appauthor=False)


def cache_folder() -> Path:
    """Return the platform's folder for caches, or the one that LOCKSTEP_CACHE names."""
    if "LOCKSTEP_CACHE" in os.environ:
        return Path(os.environ["LOCKSTEP_CACHE"])
    return platformdirs.user_cache_path("lockstep", appauthor=False)
