"""A program without an end, and one that takes all memory, are ended with a sentence where limits are given."""

from __future__ import annotations

import pytest

ENDLESS = {
    "an endless loop on the host": (
        "int main() { volatile int i = 0; while (true) i = i + 1; }",
        "",
    ),
    "an endless kernel": (
        """
        __global__ void spin(volatile int *flag) { while (*flag == 0) {} }
        int main() {
            int *flag;
            CHECK(cudaMalloc(&flag, 4));
            CHECK(cudaMemset(flag, 0, 4));
            puts("before");
            fflush(stdout);
            spin<<<1, 32>>>(flag);
            CHECK(cudaDeviceSynchronize());
        }
        """,
        "before\n",
    ),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_does_not_end_is_ended_in_time(program, what):
    text, said = ENDLESS[what]
    ended = program(text, "--max-seconds", "4")
    assert (ended.code, ended.stdout) == (124, said)
    assert "lockstep: Stopped: it took longer than the 4 s of --max-seconds.\n" in ended.stderr


def test_a_flood_of_output_is_ended_in_time(program):
    """What was said so far is seen, and the launches before are told."""
    ended = program(
        """
        __global__ void say(int i) { printf("%d\\n", i); }
        int main() { for (int i = 0;; i++) { say<<<1, 32>>>(i); printf("host %d\\n", i); } }
        """,
        "--max-seconds",
        "4",
    )
    assert ended.code == 124
    assert ended.stdout.startswith("0\n" * 32 + "host 0\n" + "1\n" * 32)
    assert "launches on the simulator" in ended.stderr


def test_memory_of_the_host_without_end_is_refused(program):
    ended = program(
        """
        #include <vector>
        int main() {
            std::vector<std::vector<char>> kept;
            for (;;) kept.emplace_back(1 << 24, 'x');
        }
        """,
        "--max-memory",
        "600",
    )
    assert ended.code == 128 + 6
    assert "The program crashed: SIGABRT. The limit of --max-memory is 600 MB.\n" in ended.stderr


def test_memory_of_the_device_without_end_is_an_error_of_cudas(program):
    ended = program(
        """
        int main() {
            cudaError_t error = cudaSuccess;
            int times = 0;
            for (void *p; error == cudaSuccess; times++) error = cudaMalloc(&p, 1 << 24);
            printf("%s %d\\n", cudaGetErrorName(error), times > 2 && times < 100);
        }
        """,
        "--max-memory",
        "600",
    )
    assert (ended.code, ended.stdout) == (0, "cudaErrorMemoryAllocation 1\n"), ended.stderr
