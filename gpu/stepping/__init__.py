"""Models of a host program's recording, which is played step by step; independent of the window."""
