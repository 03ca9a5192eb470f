"""Messages about runs of patterns: requests, results, recordings, measured times, and writers of elements."""
