"""From recorded tables to a dataflow picture: one row per lane and write, then rows of cells with edges."""
