"""What the window works on and with, without a widget: runs, jobs, settings, files."""
