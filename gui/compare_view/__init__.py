"""The Compare tab: the ladder measured over sizes."""
