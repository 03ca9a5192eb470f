"""Sequences of a lecture: show their moments, change them, and the presenter's window."""
