"""The Step tab: plays a recorded run."""
