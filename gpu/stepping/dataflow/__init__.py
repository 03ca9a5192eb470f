"""The dataflow picture: rows of cells, with edges that show the origin of each value."""
