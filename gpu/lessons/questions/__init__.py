"""Questions that a recording answers: what can be asked, the answer, and what is said of a wrong one."""
