"""The Compare tab: the variants of a pattern, measured over sizes."""
