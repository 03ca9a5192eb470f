"""Lessons: folders that a lecturer writes; questions that a recording answers, tasks that the simulator judges.

`reading.read_lesson` gives a lesson. A step's scene is recorded by `scenes.play`, its question asked by
`questions.ask.ask`, an answer marked by `questions.asked.mark`. A task begins with `tasks.start`, or with
`tasks.pieces` and `tasks.put_together`; `judging.judge` says whether a text is right, and `judging.opened` records
where it is not. `execute.py` does all that for a window.
"""
