"""Plain data that crosses between processes: frozen requests, results, and arrays in shared files."""
