"""The code of one thread: expressions, accesses and statements, and vectors of several threads."""
