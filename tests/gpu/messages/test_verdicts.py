"""One verdict: "verified" is its best case, never a part of it."""

from __future__ import annotations

import itertools

import pytest

from gpu.messages.verdicts import Check, Mistake, decide_verdict, describe_mistakes

RACE = Mistake("race", (129, 131))
BOUNDS = Mistake("out-of-bounds", (7,))
CHECKS = [
    None,
    Check(),
    Check((RACE,)),
    Check((BOUNDS,), ended=True),
    Check(orders=("shuffle:1",)),
    Check(orders=("shuffle:1", "shuffle:2"), differing=("shuffle:2",)),
    Check(failure="There is no memory."),
    Check(input="n = 4999, block = 256", unreached=(197, 201)),
    Check(wrong_input="n = 1"),
    Check((BOUNDS,), input="n = 1", wrong_input="n = 1"),
    Check(edge_cases=27, excluded=("negative values",)),
    Check(input="n = 9", unreached=(197,), left_out=(197,)),
    Check(input="n = 9", unreached=(197, 201), left_out=(197,)),
]


@pytest.mark.parametrize(
    ("right", "edited", "check", "lesson"),
    list(itertools.product((None, False, True), (False, True), CHECKS, ("", "It loses updates."))),
)
def test_only_what_is_right_and_clean_is_verified(right, edited, check, lesson):
    said = decide_verdict(right, edited=edited, check=check, lesson=lesson)
    clean = check is None or not (check.mistakes or check.differing or check.wrong_input)
    looked = not edited or (check is not None and not check.failure and not check.unreached)
    assert (said.kind == "verified") == (right is True and clean and looked and not lesson)
    assert ("verified" in said.words) == (said.kind == "verified")
    assert said.words
    assert said.sentence


@pytest.mark.parametrize(
    ("right", "check", "words"),
    [
        (True, Check((RACE,)), "right by chance: race in lines 129 and 131"),
        (False, Check((RACE,)), "✗ wrong: race in lines 129 and 131"),
        (None, Check((BOUNDS,), ended=True), "✗ wrong: out-of-bounds access in line 7"),
        (True, CHECKS[5], "right in this schedule, wrong in another: shuffle:2"),
        (True, CHECKS[6], "right, but not checked"),
        (True, CHECKS[7], "right, but the edit at lines 197 and 201 did not run"),
        (True, CHECKS[8], "right for this input, wrong for n = 1"),
        (True, CHECKS[9], "wrong for n = 1: out-of-bounds access in line 7"),
        (False, CHECKS[8], "✗ differs from reference"),
        (True, CHECKS[10], "✓ verified"),
        (True, CHECKS[11], "right, but #if leaves out the edit at line 197"),
        (True, CHECKS[12], "right, but the edit at lines 197 and 201 did not run"),
        (True, Check((RACE,), unreached=(197,)), "right by chance: race in lines 129 and 131"),
        (True, None, "right; checking for races…"),
        (False, None, "✗ differs from reference"),
        (None, None, "checking…"),
    ],
)
def test_words_of_an_edited_kernel(right, check, words):
    assert decide_verdict(right, edited=True, check=check).words == words


@pytest.mark.parametrize("check", CHECKS[11:13])
def test_the_sentence_names_the_lines_that_if_leaves_out(check):
    sentence = decide_verdict(True, edited=True, check=check).sentence
    assert "With these parameters, #if leaves out line 197." in sentence


def test_mistakes_of_one_kind_are_said_once():
    found = (RACE, Mistake("race", (131, 140)), Mistake("uninitialized", ()), Mistake("odd", (3,)))
    assert describe_mistakes(found) == "race in lines 129, 131 and 140; uninitialized read; mistake in line 3"


@pytest.mark.parametrize(
    ("right", "check", "sentence"),
    [
        (True, CHECKS[8], "The result is wrong for n = 1."),
        (False, CHECKS[8], "The result is also wrong for n = 1."),
        (True, CHECKS[9], "masks with n = 1; found: out-of-bounds access in line 7."),
        (
            True,
            CHECKS[10],
            "Excluded, as the original kernel fails or rejects them: negative values.",
        ),
    ],
)
def test_sentences_about_edge_cases(right, check, sentence):
    assert decide_verdict(right, edited=True, check=check).sentence.endswith(sentence)


def test_a_check_with_a_wrong_edge_case_is_not_clean():
    assert not CHECKS[8].clean
    assert CHECKS[10].clean
