"""Recordings: the tables of recorded events, the file that contains them, and queries on them."""
