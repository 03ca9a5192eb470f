"""The page of a kernel that no pattern declares: its launch, what came of it, its steps."""
