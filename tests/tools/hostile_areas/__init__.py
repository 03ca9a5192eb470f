"""Areas whose readers are broken, to see that `make fuzz` finds out how."""
