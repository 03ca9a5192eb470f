"""All writes of a host program, over all of its launches, and the origin of each value."""
