"""The state of a running batch of blocks: lanes, memory, pointers and call frames, and its observers."""
