"""Models of a host program that is watched step by step; they know no window."""
