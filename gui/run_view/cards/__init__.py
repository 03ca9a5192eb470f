"""Cards beside the results."""
