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
int main() {
    int *a, *b, **words;
    char *rows;
    Pair *p;
    size_t pitch;
    static int host[64];
    CHECK(cudaMalloc(&a, 64 * sizeof(int)));
    CHECK(cudaMalloc(&b, 64 * sizeof(int)));
"""


def _find(program, body: str, *options: str) -> list[str]:
    """Return the messages about uninitialized reads by a program with this text in `main`."""
    text = f"{_KERNELS}{body}\n    CHECK(cudaDeviceSynchronize());\n}}\n"
    ended = program(text, *(options or ("--check",)), report=True)
    found = [finding for launch in ended.report["launches"] for finding in launch["findings"]]
    assert ended.code == bool(found), ended.stderr
    assert {each["kind"] for each in found} <= {"uninitialized"}, found
    return [each["message"] for each in found]


@pytest.mark.parametrize(
    ("body", "first"),
    [
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
    ],
)
def test_a_read_beyond_the_written_part_is_a_finding(program, body, first):
    (message,) = _find(program, body)
    assert f": element {first} of v" in message


@pytest.mark.parametrize(
    "body",
    [
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
    ],
)
def test_a_read_of_written_bytes_is_no_finding(program, body):
    assert _find(program, body) == []
