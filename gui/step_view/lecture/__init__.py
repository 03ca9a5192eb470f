"""Lecture mode: the picture fills the screen, with the current lines, one sentence and a pointer."""
