"""Reads of memory that a program has written only in part are findings; reads of written bytes are not."""

from __future__ import annotations

import pytest

_KERNELS = """
struct Pair { char tag; double value; };
__global__ void add(int *v, int n) {
    int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n) v[i] += i;
}
__global__ void set(int *v, int n) {
    int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i < n) v[i] = i;
}
__global__ void set_words(int **words, int n) {
    if (threadIdx.x < n) words[0][threadIdx.x] = 1;
}
__global__ void add_rows(char *v, size_t pitch, int width, int height) {
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width && y < height) v[y * pitch + x] += 1;
}
__global__ void set_pairs(Pair *p) { p[threadIdx.x].tag = 1; p[threadIdx.x].value = 2; }
__global__ void copy_pairs(Pair *p, Pair *q) { q[threadIdx.x] = p[threadIdx.x]; }
__global__ void begin_case() {}
"""
_FUNCTION = """
void run_case_{number}() {{
    int *a, *b, **words;
    char *rows;
    Pair *p;
    size_t pitch;
    static int host[64];
    CHECK(cudaMalloc(&a, 64 * sizeof(int)));
    CHECK(cudaMalloc(&b, 64 * sizeof(int)));
    {body}
    CHECK(cudaDeviceSynchronize());
}}
"""

BEYOND = [
    ("cudaMemset(a, 0, 63 * sizeof(int)); add<<<2, 32>>>(a, 64);", 63),
    ("cudaMemset(a, 0, 64); add<<<2, 32>>>(a, 64);", 16),
    ("cudaMemset(a, 0, 255); add<<<1, 64>>>(a, 64);", 63),
    ("cudaMemcpy(a, host, 5, cudaMemcpyHostToDevice); add<<<1, 64>>>(a, 64);", 1),
    ("cudaMemcpy(a + 1, host, 252, cudaMemcpyHostToDevice); add<<<1, 64>>>(a, 64);", 0),
    ("set<<<1, 64>>>(a, 50); add<<<1, 64>>>(a, 64);", 50),
    (
        (
            "set<<<1, 64>>>(a, 50); cudaMemcpy(b, a, 256, cudaMemcpyDeviceToDevice);"
            "cudaMemset(a, 0, 256); add<<<1, 64>>>(b, 64);"
        ),
        50,
    ),
    (
        (
            "cudaMemset(b, 0, 256); set<<<1, 64>>>(a, 50);"
            "cudaMemcpy(b + 14, a, 200, cudaMemcpyDefault); cudaMemcpy(b, a + 40, 80, cudaMemcpyDefault);"
            "add<<<1, 64>>>(b, 64);"
        ),
        10,
    ),
    (
        (
            "cudaMalloc(&words, 8); cudaMemcpy(words, &a, 8, cudaMemcpyHostToDevice);"
            "set_words<<<1, 64>>>(words, 40); add<<<1, 64>>>(a, 64);"
        ),
        40,
    ),
    (
        (
            "cudaMallocPitch(&rows, &pitch, 20, 3); cudaMemset2D(rows, pitch, 0, 19, 3);"
            "add_rows<<<3, 32>>>(rows, pitch, 20, 3);"
        ),
        19,
    ),
    (
        (
            "cudaMallocPitch(&rows, &pitch, 20, 3);"
            "cudaMemcpy2D(rows, pitch, host, 20, 20, 2, cudaMemcpyHostToDevice);"
            "add_rows<<<3, 32>>>(rows, pitch, 20, 3);"
        ),
        1024,
    ),
]
"""The host code of each case, and the first element that it reads without writing it."""

WITHIN = [
    "cudaMemset(a, 0, 256); add<<<1, 64>>>(a, 64);",
    "cudaMemset(a, 0, 128); cudaMemcpy(a + 32, host, 128, cudaMemcpyHostToDevice); add<<<1, 64>>>(a, 64);",
    "set<<<1, 64>>>(a, 50); add<<<1, 64>>>(a, 50);",
    "set<<<1, 64>>>(a, 50); cudaMemcpy(b, a, 256, cudaMemcpyDeviceToDevice); add<<<1, 64>>>(b, 50);",
    "cudaMemset(b, 0, 256); cudaMemcpy(a, b, 256, cudaMemcpyDeviceToDevice); add<<<1, 64>>>(a, 64);",
    (
        "cudaMallocPitch(&rows, &pitch, 20, 3); cudaMemset2D(rows, pitch, 0, 20, 3);"
        "add_rows<<<3, 32>>>(rows, pitch, 20, 3);"
    ),
    (
        "cudaMallocPitch(&rows, &pitch, 20, 3); cudaMemcpy2D(rows, pitch, host, 20, 20, 3, cudaMemcpyHostToDevice);"
        "add_rows<<<3, 32>>>(rows, pitch, 20, 3);"
    ),
    "cudaMallocManaged(&a, 256); for (int i = 0; i < 64; i++) a[i] = i; add<<<1, 64>>>(a, 64);",
    (
        "set<<<1, 64>>>(b, 50); cudaMallocManaged(&a, 256); cudaMemcpy(a, b, 256, cudaMemcpyDefault);"
        "for (int i = 50; i < 64; i++) a[i] = i; add<<<1, 64>>>(a, 64);"
    ),
    (
        "cudaMalloc(&p, 32 * sizeof(Pair)); cudaMalloc(&words, 32 * sizeof(Pair));"
        "set_pairs<<<1, 32>>>(p); copy_pairs<<<1, 32>>>(p, (Pair *)words); copy_pairs<<<1, 32>>>((Pair *)words, p);"
    ),
    "set<<<1, 64>>>(a, 64); add<<<1, 64>>>(a, 64); add<<<1, 64>>>(a, 64);",
]
"""The host code of each case that reads written bytes only."""


@pytest.fixture(scope="module")
def findings(run_program) -> dict[str, list[dict[str, str]]]:
    """Run all cases as one program, and return the findings of each, by its host code."""
    cases = [body for body, _ in BEYOND] + WITHIN
    functions = "".join(_FUNCTION.format(number=number, body=body) for number, body in enumerate(cases))
    calls = "".join(f"begin_case<<<1, 1>>>(); run_case_{number}();\n" for number in range(len(cases)))
    ended = run_program(f"{_KERNELS}{functions}int main() {{\n{calls}}}\n", "--check", report=True)
    assert ended.code == 1, ended.stderr
    found: list[list[dict[str, str]]] = []
    for launch in ended.report["launches"]:
        if launch["kernel"] == "begin_case":
            found.append([])
        found[-1] += launch["findings"]
    return dict(zip(cases, found, strict=True))


@pytest.mark.parametrize(("body", "first"), BEYOND)
def test_a_read_beyond_the_written_part_is_a_finding(findings, body, first):
    (finding,) = findings[body]
    assert finding["kind"] == "uninitialized"
    assert f": element {first} of v" in finding["message"]


@pytest.mark.parametrize("body", WITHIN)
def test_a_read_of_written_bytes_is_no_finding(findings, body):
    assert findings[body] == []
