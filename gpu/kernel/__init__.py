"""Run any kernel on the simulator in one call: its arguments, findings and metrics."""
