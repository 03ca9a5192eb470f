"""Playback: the player, its controls, the timeline, and the state at each moment."""
