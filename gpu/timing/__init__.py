"""The timing model: predict a launch's time on a described GPU, by simulating a multiprocessor on sampled blocks."""
