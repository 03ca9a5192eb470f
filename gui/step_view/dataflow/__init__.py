"""The dataflow picture: layout, painting, zooming and scrolling."""
