"""The window's state and services without widgets: runs, jobs, settings, files."""
