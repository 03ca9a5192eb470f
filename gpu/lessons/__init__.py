"""Lessons: folders with text, questions that a recording answers, and tasks that the simulator grades.

`reading.read_lesson` loads a lesson. `scenes.play` records a step's scene, `questions.ask.ask` asks its question, and
`questions.asked.mark` marks an answer. A task begins with `tasks.start`, or with `tasks.pieces` and
`tasks.put_together`; `judging.judge` grades a submission, and `judging.opened` records its failure. `execute.py`
executes the window's requests for these.
"""
