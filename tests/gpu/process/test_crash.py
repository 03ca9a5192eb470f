from __future__ import annotations

import pytest

from gpu.process.crash import describe_death
from tests import needs


@needs.posix
@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "killed by the system, most likely because memory ran out"),
        (-11, "accessed invalid memory (SIGSEGV)"),
        (-7, "accessed invalid memory (SIGBUS)"),
        (-6, "aborted after an error"),
        (-4, "an instruction that this CPU does not support"),
        (-27, "Parsing the kernel exceeded the limit of CPU time"),
        (-14, "Parsing the kernel exceeded the time limit"),
        (-15, "ended by a signal from outside (SIGTERM)"),
        (-63, "ended by a signal from outside (signal 63)"),
    ],
)
def test_a_signal_is_told_in_plain_words(code: int, words: str):
    message, advice = describe_death(code)
    assert words in message
    assert advice


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0xC0000005, "accessed invalid memory"),
        (0xC00000FD, "ran out of stack"),
        (3, "exited unexpectedly with code 3"),
        (None, "no longer answers"),
    ],
)
def test_an_exit_code_is_told_in_plain_words(code: int | None, words: str):
    message, advice = describe_death(code)
    assert words in message
    assert advice
