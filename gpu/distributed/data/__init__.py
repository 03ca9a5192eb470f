"""Input and output of workers: chunks of arrays and of files."""
