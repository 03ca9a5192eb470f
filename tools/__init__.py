"""Development tools: set-up, checks, fuzzing and mutation tests."""
