"""The kernel editor: edited sources, syntax colors, problems."""
