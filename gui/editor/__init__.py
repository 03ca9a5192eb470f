"""The kernel editor: texts that may differ from their files, their colors, their problems."""
