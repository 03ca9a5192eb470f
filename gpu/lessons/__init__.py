"""Lessons: folders that a lecturer writes; questions that a recording answers, tasks that the simulator judges."""
