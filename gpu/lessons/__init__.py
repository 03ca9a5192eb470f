"""Lessons: folders with text, questions that a recording answers, and tasks that the simulator grades.

`lesson_reader.read_lesson` loads a lesson. `scenes.record_scene` records a step's scene,
`questions.generation.ask_question` asks its question, and `questions.evaluation.mark_answer` marks an answer. A task
begins with `task_texts.initial_text`, or with `task_texts.shuffled_lines` and `task_texts.line_frame`;
`grading.grade_submission` grades a submission, and `grading.record_failure` records its failure. `handlers`
executes the window's requests for these.
"""
