"""The Step tab: a recorded run, played."""
