"""A desktop for commands that open no window."""

from __future__ import annotations

from gpu.cli.main import Desktop

NO_WINDOW = Desktop(open_window=lambda path: 77, run_tour=len, measure_actions=lambda page, repetitions: 78)
