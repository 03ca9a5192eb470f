"""Insert one error at a time into the lessons' reference solutions, and check that each mutant is rejected.

The errors are those that students make: a dropped or moved barrier, a bound that is off by one or missing, a wrong
stride, a lost last element, a wrong identity, a swapped buffer, a wrong mask. Mutants that do not compile are not
counted. `python -m tools.lesson_mutants`; docs/lessons.md has the figures.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpu.lessons.grading import grade_submission
from gpu.lessons.lesson import Lesson, Task
from gpu.lessons.lesson_reader import read_all_lessons
from gpu.lessons.task_texts import reference_solution

REQUIRED_SHARE = 0.97
"""Least share of the mutants that the grader has to reject."""

EQUIVALENT = {
    ("clamp", "if (value <= low) value = low;"): "an equal value does not change",
    ("halo", "if (t == 0) s[0] = i > 1 ? x[i - 1] : 0.0f;"): "i is a multiple of 64 in these threads",
    ("halo", "if (t == 63) s[65] = i + 1 < n ? x[i + 1] : 0.0f;"): "only thread 63 reads this element, and it wrote it",
    ("tree", "if (t == 1) y[blockIdx.x] = s[0];"): "after the barrier any thread may write the sum",
    ("tree", "if (t < half) s[t] += s[t + half];"): "thread 0 reads s[0], which it wrote itself",
    ("guard", "if (t == 0) y[blockIdx.x] = x[i];"): "no block begins after the array's end",
    ("last-warp", "if (t == 1) *y = own;"): "all lanes have the sum",
    ("largest", "if (t == 1) *y = max(max(s[0], s[1]), max(s[2], s[3]));"): "after the barrier any thread may read",
    ("rotate", "for (int round = 0; round < rounds; ++round) {"): "one more barrier in each round",
    ("kogge-stone", "for (int stride = 1; stride < 64; stride *= 2) {"): "one more barrier in each round",
    ("double-buffer", "s[to][t] = s[from][t] + (t >= stride ? s[from][t - stride] : 0);"): "the last barrier orders "
    "nothing: each thread reads its own element",
    ("down-sweep", "if (i < 64) s[i] += s[i - stride];"): "the last step up writes s[63], which is not read again",
    ("ticket", "if (threadIdx.x == 1) {"): "any thread of the block may take the ticket",
    ("ticket", "if (threadIdx.x == 1) sums[part] = total;"): "after the barrier any thread may write",
    ("pack", "if (t == 1) *count = __popc(votes);"): "all lanes have the votes",
    ("tiled", "b[y][x] = column < n && first + y < k ? B[(first + y) * n + column] : 1.0f;"): "a is zero there",
    ("odd-even", "for (int round = 0; round <= n; ++round) {"): "one more round exchanges nothing",
    ("no-conflicts", "int to = blockIdx.y * 32 + threadIdx.x;"): "the barrier moved past a private variable",
    ("halo", "int column = blockIdx.x * 8 + threadIdx.x;"): "the barrier moved past a private variable",
    ("double-buffer", "from = to;"): "the barrier moved past a private variable",
    ("guard", "if (t == 0 && i <= n) y[blockIdx.x] = x[i];"): "no block begins after the array's end",
    ("guard", "if (t % (2 * stride) == 0 && i + stride < n) x[i] += x[i + stride];"): "the last barrier orders only "
    "accesses of thread 0",
    ("kogge-stone", "for (int stride = 1; stride <= 64; stride *= 2) {"): "no thread has an element 64 before its own",
    ("exclusive", "for (int stride = 1; stride <= 64; stride *= 2) {"): "no thread has an element 64 before its own",
    ("add-back", "for (int stride = 1; stride <= 64; stride *= 2) {"): "no thread has an element 64 before its own",
    ("down-sweep", "for (int stride = 1; stride <= 64; stride *= 2) {"): "no thread has an element 64 before its own",
    ("down-sweep", "if (i <= 64) s[i] += s[i - stride];"): "i is odd",
    ("kogge-stone", "s[t] = t < n ? x[t] : 1;"): "elements after the end are in no sum before it",
    ("double-buffer", "s[0][t] = t < n ? x[t] : 1;"): "elements after the end are in no sum before it",
    ("down-sweep", "for (int i = t; i < 64; i += 32) s[i] = i < n ? x[i] : 1;"): "elements after the end are in no sum "
    "before it",
    ("add-back", "s[t] = i < n ? x[i] : 1;"): "elements after the end are in no sum before it",
    ("exclusive", "s[t] = t <= n && t > 0 ? x[t - 1] : 0;"): "elements after the end are in no sum before it",
    ("exclusive", "for (int stride = 1; stride < 64; stride *= 2) {"): "one more barrier in each round",
    ("add-back", "for (int stride = 1; stride < 64; stride *= 2) {"): "one more barrier in each round",
    ("add-back", "for (int b = 1; b < blocks - 1; ++b) sums[b] += sums[b - 1];"): "the last sum is never read",
    ("runs", "int threads = blockDim.x;"): "a single block does all the work",
    ("runs", "int each = (n + threads) / threads;"): "sections are longer, and still cover the array once",
    ("tiled", "for (int first = 0; first <= k; first += 8) {"): "one more tile of zeros",
    ("tiled", "a[y][x] = row < m && first + x < k ? A[row * k + first + x] : 1.0f;"): "b is zero there",
    ("registers", "float sums[4 + 1] = {0.0f, 0.0f, 0.0f, 0.0f};"): "one more element, which is not used",
    ("bitonic", "for (int size = 2; size <= 32; size *= 2) {"): "one more barrier in each round",
    ("radix", "for (int bit = 0; bit <= bits; ++bit) {"): "that bit is 0 in all keys",
    ("tile", "for (int j = 0; j < 32 && first + j < n; ++j) {"): "one more barrier in each round",
    ("tile", "for (int first = 0; first <= n; first += 32) {"): "one more tile, which is empty",
    ("block", "float power = t <= n ? expf(value - largest) : 0.0f;"): "e to minus infinity is 0",
    ("shuffle", "float power = t <= n ? expf(value - largest) : 0.0f;"): "e to minus infinity is 0",
    ("block", "for (int half = 16; half > 0; half /= 2) {"): "one more barrier in each round",
    ("tile", "float own = i < n ? x[i] : 1.0f;"): "threads without a body write nothing",
    ("coarse", "for (int y = threadIdx.y; y < 32; y += 8) {"): "one more barrier in each round",
    ("swizzle", "for (int y = threadIdx.y; y < 32; y += 8) {"): "one more barrier in each round",
    ("cube", "bool inner = 0 < i && i < 5 && 0 < j && j < 5 && 0 < k && k < 5;"): "the barrier moved past a private "
    "variable",
    ("planes", "below = own;"): "the barrier moved past a private variable",
    ("planes", "int sum = 6 * own - below - above;"): "the barrier moved past a private variable",
    ("planes", "int above = inside && z + 1 < n ? a[((z + 1) * n + y) * n + x] : 0;"): "a is never written",
    ("planes", "if (inside) b[(z * n + y) * n + x] = sum;"): "the sum is a private variable",
    ("ninety-six", "for (int left = 96; left > 1; left = (left + 1) / 2) {"): "one more barrier in each round",
    ("ninety-six", "if (t < left / 2) s[t] += s[t + (left + 1) / 2];"): "thread 0 reads s[0], which it wrote itself",
    ("ninety-six", "if (t == 1) y[blockIdx.x] = s[0];"): "after the barrier any thread may write the sum",
    ("all-come", "s[t] = t < n ? x[t] : 1;"): "elements after the end are in no sum before it",
    ("all-come", "for (int stride = 1; stride < 64; stride *= 2) {"): "one more barrier in each round",
    ("all-come", "for (int stride = 1; stride <= 64; stride *= 2) {"): "no thread has an element 64 before its own",
    ("tile-of-b", "for (int first = 0; first <= k; first += 8) {"): "one more tile of zeros",
    ("tile-of-b", "a[y][x] = row < m && first + x < k ? A[row * k + first + x] : 1.0f;"): "b is zero there",
    (
        "tile-of-b",
        "b[y][x] = column < n && first + y < k ? B[(first + y) * n + column] : 1.0f;",
    ): "a is zero there",
    ("largest", "if (t % 32 == 0) s[t / 31] = own;"): "0, 32, 64 and 96 by 31 are 0, 1, 2 and 3 as well",
    ("kogge-stone", "for (int stride = 1; stride < 63; stride *= 2) {"): "the strides are powers of two",
    ("all-come", "for (int stride = 1; stride < 63; stride *= 2) {"): "the strides are powers of two",
    ("double-buffer", "for (int stride = 1; stride < 63; stride *= 2) {"): "the strides are powers of two",
    ("down-sweep", "for (int stride = 1; stride < 63; stride *= 2) {"): "the strides are powers of two",
    ("exclusive", "for (int stride = 1; stride < 63; stride *= 2) {"): "the strides are powers of two",
    ("add-back", "for (int stride = 1; stride < 63; stride *= 2) {"): "the strides are powers of two",
    ("down-sweep", "if (i + stride < 63) s[i + stride] += s[i];"): "i + stride is 63 in no step",
    ("runs", "int threads = gridDim.y * blockDim.x;"): "a single block does all the work",
    ("runs", "int threads = gridDim.x * blockDim.y;"): "two threads do all the work",
    ("planes", "int x = threadIdx.x;"): "the plane's last column is zero and precedes the next row in memory",
    ("last-block", "if (threadIdx.x == 1) {"): "any thread of the block may publish the sum",
    ("last-block", "if (last && threadIdx.x == 1) {"): "after the barrier any thread may add the sums",
    ("last-block", "if (threadIdx.x == 1) own = 0;"): "any thread of the block may clear the sum",
    ("last-block", "int i = blockIdx.x * blockDim.x + threadIdx.x;"): "the barrier moved past a private variable",
    ("chain", "if (threadIdx.x == 1) {"): "any thread of the block may take the ticket, or pass the sum on",
    ("four-loads", "for (; i + 3 * threads < n - 1; i += 4 * threads) {"): "the second loop scales the last four",
    ("fixed-order", "if (threadIdx.x == 1) {"): "after the barrier any thread may add the sums",
    ("segments", "for (int stride = 1; stride < 64; stride *= 2) {"): "one more barrier in each round",
    ("segments", "for (int stride = 1; stride < 63; stride *= 2) {"): "the strides are powers of two",
    ("segments", "for (int stride = 1; stride <= 64; stride *= 2) {"): "no thread has an element 64 before its own",
    ("segments", "int flag = t >= stride ? f[t - stride] : 1;"): "no element before it is left to add",
    ("segments", "s[t] = t < n ? x[t] : 1;"): "elements after the end are in no sum before it",
    ("scores", "float sum = 1.0f;"): "softmax subtracts what all scores have in common",
    ("softmax", "float sum = 1.0f;"): "softmax subtracts what all scores have in common",
    ("online", "float out[4 + 1] = {0.0f, 0.0f, 0.0f, 0.0f};"): "one more element, which is not used",
    ("online", "float score = 1.0f;"): "softmax subtracts what all scores have in common",
    ("online", "float sum = 1.0f;"): "the first key scales it by e to minus infinity, which is 0",
    ("tiles", "float own[4 + 1];"): "one more element, which is not used",
    ("tiles", "float out[4 + 1];"): "one more element, which is not used",
    ("tiles", "float score = 1.0f;"): "softmax subtracts what all scores have in common",
    ("tiles", "float sum = 1.0f;"): "the first key scales it by e to minus infinity, which is 0",
    ("tiles", "for (int k = 0; k < count; ++k) {"): "one more barrier in each round",
    ("warp-segments", "for (int d = 1; d < 31; d *= 2) {"): "the distances are powers of two",
    ("warp-segments", "for (int d = 1; d <= 32; d *= 2) {"): "no lane has a value 32 before its own",
    ("warp-segments", "int sum = i < n ? x[i] : 1;"): "elements after the end are in no sum before it",
    ("errors", "scale<<<(n + threads) / threads, threads>>>(device_x, device_y, n);"): "one more block, which is idle",
    ("errors", 'fprintf(stderr, "%s\\n", cudaGetErrorString(error));'): "one more line of error output",
    ("pipeline", "cudaStream_t streams[2 + 1];"): "one more stream, which is not used",
}
"""Mutants equivalent to the solution, by task and line, with the reason: no grader can reject them."""

_BARRIER = re.compile(r"\s*__sync(?:threads|warp)\(\);\s*")
_CHANGES: tuple[tuple[str, str, str], ...] = (
    ("off by one", r"< (\w+)\b(?=[;) ])", r"<= \1"),
    ("off by one", r"<= (\w+)\b", r"< \1"),
    ("off by one", r"> 0", r"> 1"),
    ("off by one", r"\+ 1\b", r"+ 2"),
    ("off by one", r" - 1\b", ""),
    ("off by one", r" == 0\b", r" == 1"),
    ("off by one", r"\[(\w+)\]", r"[\1 + 1]"),
    ("lost last element", r"< n\b", r"< n - 1"),
    ("lost last element", r"< (width|height|k|m|blocks|bits|rounds)\b", r"< \1 - 1"),
    ("missing bound", r"if \([^()]*(?:\([^()]*\)[^()]*)*\) (?=[\w*])", ""),
    ("missing bound", r" && [^&?;)]+(?=\)| \?| &&|;)", ""),
    ("missing bound", r"(?<=\()[^&(;]+ && ", ""),
    ("missing bound", r"\b[\w ]+ < \w+ \? ([\w\[\] +*.-]+) : [\w.-]+", r"\1"),
    ("wrong stride", r"\*= 2", "*= 4"),
    ("wrong stride", r"/= 2", "/= 4"),
    ("wrong stride", r"\+= (\d+|stride|threads)\b", r"+= 2 * \1"),
    ("wrong stride", r"\b2 \* ", ""),
    ("wrong stride", r"gridDim\.x \* blockDim\.x", "blockDim.x"),
    ("wrong stride", r"blockIdx\.([xy]) \* (\w+)", r"blockIdx.\1"),
    ("wrong identity", r": 0(\.0f)?\b", r": 1\1"),
    ("wrong identity", r"= 0(\.0f)?;", r"= 1\1;"),
    ("wrong identity", r"-INFINITY", "0.0f"),
    ("wrong identity", r"-2147483647 - 1", "0"),
    ("wrong mask", "0xffffffffu", "0x7fffffffu"),
    ("wrong operator", r" \+= ", " = "),
    ("wrong operator", r"(?<=\w) \+ (?=[a-z(])", " - "),
    ("wrong operator", r" && ", " || "),
    ("wrong operator", r"\bmax\(", "min("),
    ("wrong operator", r"\bmin\(", "max("),
    ("wrong constant", r"\b64\b", "63"),
    ("wrong constant", r"\b32\b", "31"),
    ("wrong constant", r"\b31\b", "32"),
    ("wrong constant", r"\b16\b", "15"),
    ("wrong constant", r"\b8\b", "7"),
    ("swapped axes", r"\b(threadIdx|blockIdx|blockDim|gridDim)\.x\b", r"\1.y"),
    ("swapped axes", r"\b(threadIdx|blockIdx|blockDim|gridDim)\.y\b", r"\1.x"),
    ("swapped axes", r"\b(width|columns)\b", "height"),
    ("swapped axes", r"\b(height|rows)\b", "width"),
    ("no atomic", r"atomicAdd\(&?([\w\[\].]+), (\w+)\);", r"\1 += \2;"),
)
_INDEXED = re.compile(r"\b(\w+)\[")


@dataclass(frozen=True)
class LessonMutant:
    """A solution with an error: its kind, and the line before and after."""

    lesson: str
    task: str
    kind: str
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.lesson}/{self.task} line {self.line}: {self.kind}\n-    {self.before}\n+    {self.after}"


def generate_mutants(lesson: Lesson, task: Task) -> Iterator[LessonMutant]:
    """Yield a task's solution with one error each."""
    lines = reference_solution(lesson, task).split("\n")
    seen = {"\n".join(lines)}
    for kind, number, mutant_lines in _generate_edits(lines):
        text = "\n".join(mutant_lines)
        if text not in seen:
            seen.add(text)
            before, after = lines[number].strip(), mutant_lines[number].strip() if number < len(mutant_lines) else ""
            yield LessonMutant(lesson.name, task.name, kind, number + 1, before, after, text)


def _generate_edits(lines: Sequence[str]) -> Iterator[tuple[str, int, list[str]]]:
    for number, line in enumerate(lines):
        code = line.split("//")[0].rstrip()
        if not code or code.startswith(("__global__", "__constant__")) or "__shared__" in code:
            continue
        rest = line[len(code) :]
        if _BARRIER.fullmatch(code):
            yield "dropped barrier", number, [*lines[:number], *lines[number + 1 :]]
            for other in (number - 1, number + 1):
                if ";" in lines[other] and not _BARRIER.fullmatch(lines[other]):
                    moved = list(lines)
                    moved[number], moved[other] = moved[other], moved[number]
                    yield "moved barrier", number, moved
            continue
        for kind, pattern, replacement in _CHANGES:
            for match in re.finditer(pattern, code):
                edited = code[: match.start()] + match.expand(replacement) + code[match.end() :] + rest
                yield kind, number, [*lines[:number], edited, *lines[number + 1 :]]
        names = sorted({each[1] for each in _INDEXED.finditer("\n".join(lines))})
        for match in _INDEXED.finditer(code):
            for name in names:
                if name != match[1]:
                    edited = code[: match.start(1)] + name + code[match.end(1) :] + rest
                    yield "swapped buffer", number, [*lines[:number], edited, *lines[number + 1 :]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate mutants, grade them, and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "lessons", nargs="*", metavar="LESSON", help="lessons whose solutions are changed (default: all)"
    )
    parser.add_argument("--each", type=int, default=8, help="most mutants per task (default: 8)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the choice of mutants (default: 1)")
    options = parser.parse_args(arguments)
    chosen: list[tuple[Lesson, Task, LessonMutant]] = []
    lessons = {lesson.name: lesson for lesson in read_all_lessons()}
    if unknown := set(options.lessons) - set(lessons):
        parser.error(f"there is no lesson {', '.join(sorted(unknown))}; there are {', '.join(lessons)}")
    for name in options.lessons or lessons:
        for task in (lesson := lessons[name]).tasks:
            mutants = list(generate_mutants(lesson, task))
            sample = random.Random(f"{options.seed} {task.name}").sample(mutants, min(options.each, len(mutants)))
            chosen += [(lesson, task, mutant) for mutant in sample]
    counts: Counter[str] = Counter()
    survivors: list[LessonMutant] = []
    refused, equivalent, slowest, began = 0, 0, 0.0, time.monotonic()
    for lesson, task, mutant in chosen:
        start = time.process_time()
        judgment = grade_submission(lesson, task, mutant.text)
        slowest = max(slowest, time.process_time() - start)
        if not judgment.runs:
            refused += 1
            continue
        counts[mutant.kind] += 1
        if judgment.accepted and (task.name, mutant.after) in EQUIVALENT:
            equivalent += 1
            counts[mutant.kind] -= 1
        elif judgment.accepted:
            survivors.append(mutant)
            print(f"survived: {mutant}", flush=True)
    total = sum(counts.values())
    share = 1 - len(survivors) / max(total, 1)
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    print(
        f"{total - len(survivors)} of {total} rejected ({share:.1%}); {equivalent} more are equivalent to the "
        f"solution, {refused} do not compile; "
        f"{time.monotonic() - began:.0f} s, the slowest verdict {slowest:.1f} s of computing"
    )
    return 0 if share >= REQUIRED_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
