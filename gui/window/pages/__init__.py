"""The pages of patterns, and what acts on the visible page."""
