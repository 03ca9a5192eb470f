"""The figure as large as the screen, for a lecture: current lines, one sentence, a pointer."""
