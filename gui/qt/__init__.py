"""What Qt leaves to be said each time: what is done later, and on another thread; what an event is."""
