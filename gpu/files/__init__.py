"""Reading and writing of files: images, arrays, texts, kernel sources."""
