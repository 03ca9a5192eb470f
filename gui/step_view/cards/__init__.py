"""What is told beside the pictures: counts, lanes, memory traffic, the verdict."""
