"""Cards next to the pictures: counts, lanes, memory traffic, findings."""
