"""What drives the real window: the tour, README's pictures, the benchmark of moves."""
