"""Questions about recordings: generation, answers, and evaluation of answers."""
