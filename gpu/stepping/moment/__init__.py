"""The state at a moment: the activity of lanes, memory traffic, and the values of variables."""
