"""A program without an end, and one that takes all memory, are ended with a sentence where limits are given."""

from __future__ import annotations

import pytest

from tests.gpu.hosts.time_limits import run_with_limits

ENDLESS = {
    "an endless loop on the host": (
        "int main() { volatile int i = 0; while (true) i = i + 1; }",
        "",
    ),
    "an endless kernel": (
        """
        __global__ void spin(volatile int *flag) { for (unsigned i = 0; *flag == 0; i++); }
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
    ended, limit = run_with_limits(lambda limit: program(text, "--max-seconds", limit), said)
    assert (ended.code, ended.stdout) == (124, said)
    assert f"lockstep: Stopped: it took longer than the {limit} s of --max-seconds.\n" in ended.stderr


def test_a_flood_of_output_is_ended_in_time(program):
    """What was said so far is seen, and the launches before are told."""
    text = """
    __global__ void say(int i) { printf("%d\\n", i); }
    int main() { for (int i = 0;; i++) { say<<<1, 32>>>(i); printf("host %d\\n", i); } }
    """
    said = "0\n" * 32 + "host 0\n" + "1\n" * 32
    ended, _ = run_with_limits(lambda limit: program(text, "--max-seconds", limit), said)
    assert ended.code == 124
    assert ended.stdout.startswith(said)
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
    text = "lockstep: cudaMalloc failed: out of memory - 16,777,216 bytes are requested, more than --max-memory or this"
    assert ended.stderr.count(text) == 1


REPETITIONS = (
    "while (!a[0]);",
    "int v; do v = *(volatile int *)a; while (v == 0);",
    "for (;;) { if (a[threadIdx.x] == 7) break; }",
    "while (atomicExch(a, 1) == 1);",
    "while (atomicCAS(a, 1, 0) != 1) __threadfence();",
)
"""Loops that repeat the same iteration for ever, with zeros in memory."""
LONG = (
    "while (atomicAdd(a, 1) < 5000);",
    "int i = 0; while (i < 5000) i += a[1];",
    "long long begin = clock64(); while (clock64() - begin < 5000);",
    "for (int i = 0; a[1] && i < 5000; i++);",
)
"""Loops that end, with a one in the second element."""


@pytest.mark.parametrize("option", [(), ("--fast",)])
def test_a_loop_that_no_thread_can_end_is_a_finding(program, option):
    loops = (*LONG, *REPETITIONS)
    kernels = "".join(f"__global__ void kernel_{number}(int *a) {{ {loop} }}\n" for number, loop in enumerate(loops))
    cases = "".join(f"case {number}: kernel_{number}<<<1, 40>>>(a); break;\n" for number in range(len(loops)))
    ended = program(
        f"""
        {kernels}
        int main() {{
            for (int number = 0; number < {len(loops)}; number++) {{
                int *a, values[40] = {{0, number < {len(LONG)}}};
                CHECK(cudaMalloc(&a, sizeof values));
                CHECK(cudaMemcpy(a, values, sizeof values, cudaMemcpyHostToDevice));
                switch (number) {{ {cases} }}
                puts(cudaGetErrorName(cudaDeviceSynchronize()));
                cudaDeviceReset();
            }}
        }}
        """,
        *option,
    )
    assert dict(zip(loops, ended.stdout.split(), strict=True)) == {
        **dict.fromkeys(LONG, "cudaSuccess"), **dict.fromkeys(REPETITIONS, "cudaErrorLaunchTimeout"),
    }, ended.stderr  # fmt: skip


@pytest.mark.parametrize(
    "test", ["*flag == 0", "cuda::atomic_ref<int>(box[0]).load() == 0"], ids=["volatile", "atomic reference"]
)
def test_a_kernel_that_waits_for_the_host_is_refused(program, test):
    """The program waits for the kernel too, so it is ended."""
    ended = program(
        f"""
        #include <cuda/atomic>
        __global__ void serve(int *box) {{
            volatile int *flag = box;
            while ({test}) {{}}
            __threadfence_system();
            flag[1] = 1;
        }}
        int main() {{
            int *box;
            CHECK(cudaHostAlloc(&box, 8, cudaHostAllocMapped));
            box[0] = box[1] = 0;
            printf("before");
            serve<<<1, 1>>>(box);
            ((volatile int *)box)[0] = 1;
            while (((volatile int *)box)[1] == 0) {{}}
        }}
        """,
        "--check",
    )
    assert (ended.code, ended.stdout) == (2, "before")
    assert (
        "the kernel waits in this loop for element 0 of box (global memory), which the host may write" in ended.stderr
    )


def test_an_endless_loop_is_named_with_its_line_in_machine_code(program):
    ended = program(
        """
        __global__ void wait(int *a) {
            while (!a[0]);
        }
        int main() {
            int *a;
            CHECK(cudaMalloc(&a, 4)); CHECK(cudaMemset(a, 0, 4));
            wait<<<1, 1>>>(a);
            CHECK(cudaDeviceSynchronize());
        }
        """,
        "--fast",
    )
    assert ended.code == 1
    assert "the launch timed out and was terminated" in ended.stderr
    assert "program.cu:12:13" in ended.stderr, ended.stderr


def test_a_kernel_has_as_many_bytes_of_parameters_as_cuda_allows(program):
    text = """
    struct Values { char bytes[BYTES]; };
    __global__ void take(Values values, int *last) { *last = values.bytes[BYTES - 1]; }
    int main() {
        Values values = {};
        values.bytes[BYTES - 1] = 7;
        int *device, last;
        CHECK(cudaMalloc(&device, sizeof *device));
        take<<<1, 1>>>(values, device);
        CHECK(cudaMemcpy(&last, device, sizeof last, cudaMemcpyDefault));
        printf("%d\\n", last);
    }
    """
    accepted = program(text.replace("BYTES", "32752"))
    assert accepted.stdout == "7\n", accepted.stderr
    refused = program(text.replace("BYTES", "32760"))
    assert refused.code == 1
    assert "a kernel has at most 32,764 bytes of parameters" in refused.stderr
