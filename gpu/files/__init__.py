"""Files that are read and written: images, arrays, texts, sources."""
