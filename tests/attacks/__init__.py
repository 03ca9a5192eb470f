"""Attacks on what reads files: each makes one hostile input, and fails where anything but an answer comes out."""
