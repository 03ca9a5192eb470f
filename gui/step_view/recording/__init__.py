"""What is recorded, asked for and read."""
