"""Cards beside the pictures: counts, lanes, memory traffic, findings."""
