"""Side-by-side view of two recordings on one timeline."""
