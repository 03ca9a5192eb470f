"""What sets a machine up to run Lockstep, with nothing but Python's standard library."""
