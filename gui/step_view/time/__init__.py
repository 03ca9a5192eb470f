"""Where a recording stands and what moves it."""
