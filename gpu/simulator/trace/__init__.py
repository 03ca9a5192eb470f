"""Records a launch, and answers questions about it."""
