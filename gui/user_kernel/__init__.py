"""The page of a user's own kernel: its launch, results and steps."""
