"""The dataflow picture: laid out, painted, zoomed, scrolled."""
