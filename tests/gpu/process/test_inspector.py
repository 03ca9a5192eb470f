"""The process that looks at recordings: hostile, huge and damaged ones end there, in a sentence."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.process import inspector
from gpu.process.inspector import Inspector
from gpu.recording.recording import Recording
from gpu.stepping import inspection
from gpu.stepping.derived_data import derive_data
from gpu.stepping.inspection import inspect
from gpu.stepping.memory_demand import estimate_minimum_bytes
from tests import needs
from tests.attacks.recordings import attack, change_members, check_answer, list_valid_recordings
from tests.gpu.stepping.recordings import record_launch


@pytest.fixture
def live_inspector():
    made = Inspector()
    yield made
    made.close()


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.lockstep"
    path.write_bytes(list_valid_recordings()[0])
    return path


def check_refusal(looking, path, advice="Record it again"):
    with pytest.raises(InputError) as caught:
        looking.read(path)
    assert advice in caught.value.advice
    return caught.value.message


def test_what_was_looked_at_is_what_is_given(live_inspector, path, monkeypatch):
    live_inspector.prepare()
    assert live_inspector.read(path) == list_valid_recordings()[0]
    asked = inspector._inspect_recording

    def exchange(*given):
        path.write_bytes(b"something else")
        return asked(*given)

    monkeypatch.setattr(inspector, "_inspect_recording", exchange)
    assert live_inspector.read(path) == list_valid_recordings()[0]


def edit_member(path, name, edit):
    """Edit a member of a recording that is JSON."""

    def edited(members):
        members[name] = json.dumps(edit(json.loads(members[name]))).encode()

    path.write_bytes(change_members(path.read_bytes(), edited))


def widen(manifest, key):
    memory = next(each for each in manifest["memories"] if each["space"] == "shared")
    memory[key] = 10**10
    return manifest


HUGE = {
    "blocks": lambda path: edit_member(path, "0/manifest.json", lambda found: widen(found, "blocks")),
    "stride": lambda path: edit_member(path, "0/manifest.json", lambda found: widen(found, "stride")),
    "a grid": lambda path: edit_member(
        path, "0/manifest.json", lambda found: {**found, "launches": [{**found["launches"][0], "grid": [10**9, 1, 1]}]}
    ),
    "a manifest that unpacks to 64 MB": lambda path: path.write_bytes(
        change_members(path.read_bytes(), lambda members: members.update({"0/manifest.json": bytes(64 << 20)}))
    ),
    "a text of many brackets": lambda path: path.write_bytes(
        change_members(path.read_bytes(), lambda members: members.update({"recording.json": b"[" * (1 << 20)}))
    ),
}


@pytest.mark.parametrize("kind", HUGE)
def test_what_would_take_all_memory_is_damaged(path, kind):
    HUGE[kind](path)
    with pytest.raises(InputError, match="is not a recording, or is damaged") as caught:
        inspect(path.read_bytes(), str(path))
    assert isinstance(caught.value.__cause__, ValueError | RecursionError), "before anything is made of that size"


def declare_member_size(data, name, size):
    """Return an archive that says of a member that it unpacks to so many bytes."""
    place = data.index(b"PK\x01\x02")
    while not data[place + 46 :].startswith(name.encode()):
        place = data.index(b"PK\x01\x02", place + 4)
    return data[: place + 24] + size.to_bytes(4, "little") + data[place + 28 :]


def blocks(path, count):
    def wider(found):
        return {**found, "launches": [{**found["launches"][0], "grid": [count, 1, 1]}]}

    edit_member(path, "0/manifest.json", wider)
    edit_member(path, "1/manifest.json", wider)


DEMANDING = {
    "members of 1.5 GB": lambda path: path.write_bytes(declare_member_size(path.read_bytes(), "1/arrays.bin", 3 << 29)),
    "a grid of 2^28 threads": lambda path: blocks(path, 2**22),
}


@pytest.mark.parametrize("kind", DEMANDING)
def test_what_takes_too_much_is_refused_before_anything_is_derived(path, kind, monkeypatch):
    DEMANDING[kind](path)
    monkeypatch.setattr(inspection, "derive_data", lambda _recording: pytest.fail("it was derived"))
    with pytest.raises(InputError, match=r"least \d\.\d GiB of memory; the limit for a file of its size is 1\.\d GiB"):
        inspect(path.read_bytes(), str(path))


def test_what_is_derived_takes_at_least_what_is_said_before():
    """Else honest recordings would be refused: the blocks of this one have arrays, variables and operations."""
    source = """
    __global__ void k(int *a) {
        __shared__ int s[64];
        int own = a[blockIdx.x * 64 + threadIdx.x];
        for (int i = 0; i < 20; i++) { s[threadIdx.x] = own + i; own += s[threadIdx.x]; }
        a[blockIdx.x * 64 + threadIdx.x] = own;
    }"""
    made = record_launch(source, [np.arange(64 * 60, dtype=np.int32)], grid=60, block=64)
    file = io.BytesIO()
    made.save(file)
    recording = Recording.read(file.getvalue(), "a.lockstep")
    wanted = estimate_minimum_bytes(recording.launches[0].trace.data)
    tracemalloc.start()
    try:
        derive_data(recording).lanes.lanes_at(recording.event_count // 2)
        assert 3 << 20 < wanted < tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_runs_out_of_memory_says_so(path, monkeypatch):
    def full(_recording):
        raise MemoryError

    monkeypatch.setattr(inspection, "derive_data", full)
    with pytest.raises(InputError, match="needs more memory than is available"):
        inspect(path.read_bytes(), str(path))


def test_what_is_damaged_is_refused_in_a_sentence(live_inspector, path):
    HUGE["blocks"](path)
    assert check_refusal(live_inspector, path) == f"{path} is not a recording, or is damaged."


@pytest.mark.parametrize("end", ["it never answers", "it computes too long", "it dies", "it says nothing", "nonsense"])
def test_a_process_that_does_not_come_back_is_not_waited_for(live_inspector, path, monkeypatch, end):
    does = {
        "it never answers": "import time; time.sleep(600)",
        "it computes too long": "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)",
        "it dies": "import os; os.abort()",
        "it says nothing": "",
        "nonsense": "print([1, 2, 3])",
    }[end]
    started = []

    def start():
        started.append(subprocess.Popen([sys.executable, "-c", does], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    monkeypatch.setattr(inspector, "_start_process", start)
    if end == "it never answers":
        monkeypatch.setattr(inspector, "_WALL_TIME_FACTOR", 0.1)
    if end in ("it never answers", "it computes too long"):
        said = f"{path} exceeds the 10 s that reading a file of its size may take."
        assert check_refusal(live_inspector, path, "Record fewer statements") == said
    else:
        assert check_refusal(live_inspector, path) == f"{path} is not a recording, or is damaged."
    assert started[0].returncode is not None


@needs.posix
def test_it_has_limits(live_inspector, path):
    """More memory than a file of its size may take is refused to it, and after so many seconds it is ended."""
    ask = (
        "import io, json, resource, sys; from gpu.stepping import inspection as i;"
        "limits = resource.RLIMIT_AS, resource.RLIMIT_CPU;"
        "i.inspect = lambda *_: print([resource.getrlimit(each)[0] for each in limits]);"
        "i._main()"
    )
    done = subprocess.run([sys.executable, "-c", ask], input=b'["a", 4]\nabcd', capture_output=True, check=True)
    memory, seconds = json.loads(done.stdout.splitlines()[0])
    assert 2**30 < memory < 2**31
    assert 0 < seconds < 20


def test_one_that_waits_goes_with_its_window(live_inspector):
    live_inspector.prepare()
    process = live_inspector._idle_process
    live_inspector.prepare()
    assert live_inspector._idle_process is process
    live_inspector.close()
    assert process.returncode is not None
    assert live_inspector._idle_process is None


def test_one_that_waits_ends_where_its_window_was_killed(live_inspector):
    live_inspector.prepare()
    process = live_inspector._idle_process
    process.stdin.close()
    assert process.wait(60) == 0


@needs.named_pipes
def test_a_pipe_is_no_recording(live_inspector, tmp_path):
    os.mkfifo(tmp_path / "pipe.lockstep")
    with pytest.raises(InputError, match="is a pipe, not a file"):
        live_inspector.read(tmp_path / "pipe.lockstep")


def test_a_hundred_changed_recordings(tmp_path):
    for seed in range(100):
        attack(np.random.default_rng(seed), tmp_path)


def test_an_attack_that_succeeds_is_noticed():
    with pytest.raises(AssertionError, match="ZeroDivisionError instead of a sentence"):
        check_answer(lambda: 1 // 0)
