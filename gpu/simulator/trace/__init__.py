"""Recording of a launch as a trace, and queries on the trace."""
