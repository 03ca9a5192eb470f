"""Lessons in the window: a pane that tells, asks and sets tasks, beside what it tells of."""
