"""The picture of where values came from: rows of cells, and edges between them."""
