"""One request carried out in the process that calls, from input to verified result and files."""
