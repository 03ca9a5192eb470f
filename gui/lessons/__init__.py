"""Lessons: a pane with text, questions and tasks, next to the page that they are about."""
