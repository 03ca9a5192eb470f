"""What a pattern declares, and what families of patterns have in common."""
