"""Wrong uses of memory that kernels allocate: each is found with both of its lines, and what is right is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu.base.findings import Finding
from gpu.kernel.simulate import simulate
from gpu.simulator.checkers.memory.heap import HeapChecker, HeapRecords
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.watched_launch import launch_watched

BEFORE = """struct Node { int x; Node *next; };
struct Pool { int *at; __device__ void drop() { free(at); } };
__device__ void drop(int *p) { free(p); }
__device__ int *made(int n) { return new int[n]; }
"""
_FIRST_LINE = BEFORE.count("\n") + 2


def list_findings(body: str, *, block: int = 32, schedule: str = "round-robin", traced: bool = False) -> list[Finding]:
    source = f"{BEFORE}__global__ void f(int *a) {{ int i = threadIdx.x;\n{body}\n}}"
    options = {"source": source, "schedule": schedule, "traced": traced}
    return simulate("test.cu", "f", 1, block, ["zeros:64"], **options).findings  # type: ignore[arg-type]


def summarize_findings(findings: list[Finding]) -> list[tuple[str, ...]]:
    """Return the kind of each finding, and its lines, counted from the body's first."""
    return [
        (finding.kind, *(str(position.line - _FIRST_LINE + 1) for position in finding.positions))
        for finding in findings
    ]


# What is in the body, one statement a line, and what is found.
WRONG: dict[str, tuple[str, tuple[str, ...]]] = {
    "read after free": ("int *p = (int *)malloc(8);\n*p = 1;\nfree(p);\na[i] = *p;", ("use-after-free", "4", "3")),
    "write after free": ("int *p = (int *)malloc(8);\nfree(p);\np[1] = 2;", ("use-after-free", "3", "2")),
    "atomic after free": ("int *p = new int(0);\ndelete p;\natomicAdd(p, 1);", ("use-after-free", "3", "2")),
    "read after delete[]": ("int *p = made(4);\np[3] = 1;\ndelete[] p;\na[i] = p[3];", ("use-after-free", "4", "3")),
    "read after cudaFree": (
        "int *p;\ncudaMalloc(&p, 4);\n*p = 1;\ncudaFree(p);\na[i] = *p;",
        ("use-after-free", "5", "4"),
    ),
    "an alias": ("int *p = new int(1), *q = p;\ndelete p;\na[i] = *q;", ("use-after-free", "3", "2")),
    "a member": ("Pool s{made(1)};\nint *p = s.at;\nfree(p);\n*s.at = 1;", ("use-after-free", "4", "3")),
    "a list that is deleted as it is walked": (
        "Node *l = new Node{1, nullptr};\nfor (Node *n = l; n;) {\ndelete n;\nn = n->next;\n}",
        ("use-after-free", "4", "3"),
    ),
    "what another thread freed": (
        """__shared__ int *p;
if (i == 0) p = made(32);
__syncthreads();
p[i] = i;
__syncthreads();
if (i == 31) delete[] p;
__syncthreads();
a[i] = p[i];""",
        ("use-after-free", "8", "6"),
    ),
    "a wide read": (
        "int4 *p = (int4 *)malloc(16);\n*p = make_int4(1, 2, 3, 4);\nfree(p);\na[i] = p->w;\nint4 v = *p; a[i] += v.x;",
        ("use-after-free", "4", "3"),
    ),
    "freed twice": ("int *p = new int;\nfree(p);\nfree(p);", ("double-free", "3", "2")),
    "freed in a loop": ("int *p = new int;\nfor (int k = 0; k < 2; k++)\nfree(p);", ("double-free", "3", "3")),
    "freed by every thread": (
        "__shared__ int *p;\nif (i == 0) p = new int;\n__syncthreads();\nfree(p);",
        ("double-free", "4", "4"),
    ),
    "deleted and freed": ("int *p = new int;\ndelete p;\nfree(p);", ("double-free", "3", "2")),
    "a parameter": ("free(a);", ("invalid-free", "1")),
    "a parameter, moved": ("delete[] (a + i);", ("invalid-free", "1")),
    "a variable": ("int x[4];\nx[0] = 1;\nfree(x);", ("invalid-free", "3")),
    "shared memory": ("__shared__ int x[4];\nx[i & 3] = 1;\nif (i == 0) free(x);", ("invalid-free", "3")),
    "the middle of a piece": ("int *p = new int[4];\np++;\nfree(p);", ("invalid-free", "3", "1")),
    "a number": ("free((void *)(size_t)1234);", ("invalid-free", "1")),
    "past the end": ("int *p = made(3);\np[3] = 1;", ("out-of-bounds", "2", "-1")),
    "far past the end": ("int *p = new int[5];\np[8] = 1;", ("out-of-bounds", "2", "1")),
    "where nothing is": ("int *p = new int[5];\np[5000] = 1;", ("out-of-bounds", "2")),
    "freed where nothing is": ("int *p = new int[5];\nfree(p + 5000);", ("invalid-free", "2")),
    "before the beginning": ("int *q = new int(1), *p = new int(1);\np[-1] = *q;", ("out-of-bounds", "2", "1")),
    "nothing at all": ("char *p = (char *)malloc(0);\n*p = 1;", ("out-of-bounds", "2", "1")),
    "never written": ("int *p = (int *)malloc(8);\np[0] = 1;\na[i] = p[1];", ("uninitialized", "3")),
    "a new without a value": ("int *p = new int;\na[i] = *p;", ("uninitialized", "2")),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_with_its_lines(name: str) -> None:
    body, expected = WRONG[name]
    first, *more = list_findings(body)
    assert summarize_findings([first]) == [expected]
    assert all(each.kind == first.kind for each in more)
    assert len(first.threads) >= 1


@pytest.mark.parametrize("name", ["read after free", "what another thread freed", "freed by every thread"])
def test_a_recording_finds_the_same_at_its_event(name: str) -> None:
    body, expected = WRONG[name]
    for schedule in ("round-robin", "shuffle:2"):
        simulation = simulate(
            "test.cu",
            "f",
            1,
            64,
            ["zeros:64"],
            source=f"{BEFORE}__global__ void f(int *a) {{ int i = threadIdx.x % 32;\n{body}\n}}",
            schedule=schedule,
            traced=True,
        )
        assert simulation.trace is not None
        [found, *_] = [each for each in simulation.trace.findings if each.finding.kind == expected[0]]
        assert simulation.trace.events[found.event].position.line == _FIRST_LINE - 1 + int(expected[1])


RIGHT = {
    "null": "int *p = nullptr;\ndelete p;\ndelete[] p;\nfree(p);\nfree(0);\ncudaFree(nullptr);",
    "null in some lanes": "int *p = i & 1 ? new int(1) : nullptr;\ndelete p;",
    "freed once": "int *p = new int(1);\na[i] = *p;\ndelete p;",
    "freed and allocated again": (
        "for (int k = 0; k < 40; k++) {\nint *p = made(2);\np[1] = k;\na[i] = p[1];\nfree(p);\n}"
    ),
    "a pointer of its own after another": "int *p = new int(1);\ndelete p;\np = new int(2);\na[i] = *p;\ndelete p;",
    "allocated by one, freed by another": (
        "__shared__ int *p;\nif (i == 0) p = made(32);\n__syncthreads();\np[i] = i;\n__syncthreads();\n"
        "a[i] = p[31 - i];\n__syncthreads();\nif (i == 5) delete[] p;"
    ),
    "a list": (
        "Node *l = nullptr;\nfor (int k = 0; k < 4; k++) l = new Node{k, l};\n"
        "while (l) { Node *n = l->next; a[i] += l->x; delete l; l = n; }"
    ),
    "a method and a function that free": "Pool s{made(1)};\ns.drop();\ndrop(made(2));",
    "the last byte": "char *p = (char *)malloc(7);\np[6] = 1;\na[i] = p[6];\nfree(p);",
    "an end that is not followed": (
        "int *p = made(4), s = 0;\nfor (int *q = p; q != p + 4; q++) *q = 1, s += *q;\na[i] = s;"
    ),
    "more than there is": "int *p = (int *)malloc(size_t(1) << 40);\nif (p) *p = 1;\nfree(p);",
    "placement": "int *p = new int(3);\nint *q = new (p) int(4);\na[i] = *q;\ndelete p;",
    "arrays with values": (
        "int *p = new int[3]{1, 2}, *q = new int[2](), *r = new int[i + 1](), *s = new int[2]{};\n"
        "a[i] = p[1] + p[2] + q[1] + r[i] + s[1];"
    ),
    "structs with values": (
        "Node *p = new Node(), *q = new Node[2](), *r = new Node{}, *s = new Node[2]{{1}, {2, r}};\n"
        "a[i] = p->x + q[1].x + r->x + s[1].next->x + (p->next == q[0].next);"
    ),
    "never freed": "int *p = new int(1);\na[i] = *p;",
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_found(name: str) -> None:
    assert list_findings(RIGHT[name]) == []
    assert list_findings(RIGHT[name], schedule="shuffle:1", block=64 if "__shared__" not in RIGHT[name] else 32) == []


LAUNCHES = """__device__ int *kept;
__global__ void make(int *a) { kept = new int(7); }
__global__ void drop(int *a) { delete kept; }
__global__ void use(int *a) {
    a[0] = *kept;
}"""


def test_a_piece_outlives_its_launch() -> None:
    module, records, out = SimulatedModule(LAUNCHES, Path("test.cu"), {}), HeapRecords(), np.zeros(1, np.int32)
    kinds = []
    for kernel in ("make", "use", "drop", "use", "drop"):
        checker = HeapChecker(records)
        launch_watched(checker, module, out, kernel=kernel, block=1)
        kinds.append([finding.kind for finding in checker.findings])
    assert kinds == [[], [], [], ["use-after-free"], ["double-free"]]


def test_of_what_was_allocated_unseen_nothing_is_claimed() -> None:
    module, out = SimulatedModule(LAUNCHES, Path("test.cu"), {}), np.zeros(1, np.int32)
    module.kernel("make").launch((1, 1, 1), (1, 1, 1), [out.view(np.uint8)])
    checker = HeapChecker()
    for kernel in ("use", "drop", "use", "make", "use", "drop"):
        launch_watched(checker, module, out, kernel=kernel, block=1)
    assert checker.findings == []


def test_a_lane_that_frees_what_nobody_saw_hides_none_behind_it() -> None:
    source = f"""{LAUNCHES}
__global__ void mix(int *a) {{
    int *p = new int[2];
    free(threadIdx.x ? p + 1 : kept);
}}"""
    module, out = SimulatedModule(source, Path("test.cu"), {}), np.zeros(1, np.int32)
    module.kernel("make").launch((1, 1, 1), (1, 1, 1), [out.view(np.uint8)])
    checker = HeapChecker()
    launch_watched(checker, module, out, kernel="mix", block=3)
    assert [found.threads for found in checker.findings] == [("thread (1,0,0) in block (0,0,0)",)]
    assert [found.count for found in checker.findings] == [2]


@pytest.mark.parametrize(
    "body",
    [
        "int *p = new int(i);\na[i] = *p;\ndelete p;\ndelete p;\nfree(a);\nfree(p + 1);\na[i] += *p;",
        """__shared__ int *p;
if (i == 0) p = made(64);
__syncthreads();
p[i] = i;
__syncthreads();
if (i == 9) delete[] p;
__syncthreads();
a[i] = p[63 - i] + p[64 + i % 2] * 0;""",
    ],
)
def test_machine_code_does_with_a_mistake_what_lockstep_does(body: str) -> None:
    module = SimulatedModule(
        f"{BEFORE}__global__ void f(int *a) {{ int i = threadIdx.x;\n{body}\n}}", Path("test.cu"), {}
    )
    compiled, lockstep = np.zeros(64, np.int32), np.zeros(64, np.int32)
    module.compiled_kernel("f").launch((1, 1, 1), (64, 1, 1), [compiled.view(np.uint8)])
    module.kernel("f").launch((1, 1, 1), (64, 1, 1), [lockstep.view(np.uint8)])
    assert compiled.tolist() == lockstep.tolist()
    assert lockstep.any()


_STEPS = st.lists(st.tuples(st.sampled_from(["new", "delete", "write", "read"]), st.integers(0, 2)), max_size=12)


@settings(max_examples=25, deadline=None)
@given(_STEPS)
def test_any_order_of_calls_is_judged_as_a_model_judges_it(steps: list[tuple[str, int]]) -> None:
    text = {
        "new": "p{} = new int;",
        "delete": "delete p{};",
        "write": "if (p{}) *p{} = 1;",
        "read": "if (p{}) a[i] = *p{};",
    }
    pieces: list[str | None] = [None, None, None]
    expected = set()
    for line, (step, which) in enumerate(steps, 2):
        now = pieces[which]
        if step == "new":
            pieces[which] = "empty"
        elif now == "freed":
            expected.add(("double-free" if step == "delete" else "use-after-free", line))
        elif step == "delete" and now:
            pieces[which] = "freed"
        elif step == "write" and now:
            pieces[which] = "full"
        elif step == "read" and now == "empty":
            expected.add(("uninitialized", line))
    body = "int *p0 = 0, *p1 = 0, *p2 = 0;\n" + "\n".join(text[step].replace("{}", str(which)) for step, which in steps)
    first = {(finding.kind, finding.positions[0].line - _FIRST_LINE + 1) for finding in list_findings(body, block=1)}
    assert {each for each in first if each[0] != "uninitialized" or each in expected} == expected


def test_new_arrays_hold_their_values() -> None:
    source = f"""{BEFORE}__global__ void f(int *a) {{
    int *p = new int[4]{{1, 2}}, n = 3;
    Node *q = new Node[2]{{{{1}}, {{5, nullptr}}}};
    int *r = new int[n](), *s = new int[n]{{}};
    a[0] = p[0] * 10 + p[1]; a[1] = p[3]; a[2] = q[1].x; a[3] = r[2] + s[2] + (q[0].next == nullptr);
}}"""
    assert simulate("test.cu", "f", 1, 1, ["full:4:9"], source=source).arrays[0].tolist() == [12, 0, 5, 1]


def test_a_template_allocates_whole_arrays() -> None:
    source = """template <int N> __global__ void f(int *a) {
    unsigned long *one = new unsigned long(9), *two = new unsigned long[2];
    unsigned long *three = new unsigned long[3](), *no = new unsigned long;
    two[1] = 3; *no = 1; a[0] = *one + two[1] + three[2] + *no;
}"""
    simulation = simulate("test.cu", "f<1>", 1, 1, ["zeros:1"], source=source)
    assert simulation.findings == []
    assert simulation.arrays[0].tolist() == [13]
