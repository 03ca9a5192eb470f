"""Any kernel on the simulator in one call: its arguments, its findings, its figures."""
