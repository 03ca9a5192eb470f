"""Memory that is kept for what comes next, and other processes' memory that stays open: by a driver that counts."""

from __future__ import annotations

import multiprocessing
from contextlib import closing

import numpy as np
import pytest

from gpu import engines
from gpu.engines.base import PoolingEngine, SharingEngine
from gpu.engines.cuda.memory_pool import FreedMemoryPool, IpcMemoryCache

MB = 2**20


class DriverError(Exception):
    pass


class NoRoomError(DriverError):
    pass


class Allocation:
    def __init__(self, driver, size):
        self.driver, self.size, self.address = driver, size, driver.next_address
        driver.next_address += 2**40
        driver.used += size

    def __int__(self):
        return self.address

    def free(self):
        self.driver.used -= self.size
        self.driver.log.append(("free", self.size // MB))


class Driver:
    """64 MB of memory, and what was done with it."""

    Error, MemoryError = DriverError, NoRoomError

    def __init__(self):
        self.log, self.used, self.next_address = [], 0, 2**40
        self.lost = set()
        driver = self

        class Handle:
            def __init__(self, handle):
                self.handle = bytes(handle)
                if self.handle in driver.lost:
                    raise DriverError("invalid handle")
                driver.log.append(("open", self.handle.decode()))

            def __int__(self):
                return 7

            def close(self):
                driver.log.append(("close", self.handle.decode()))

        class Context:
            @staticmethod
            def synchronize():
                pass

        self.IPCMemoryHandle, self.Context = Handle, Context

    def mem_alloc(self, size):
        if self.used + size > 64 * MB:
            raise NoRoomError
        self.log.append(("allocate", size // MB))
        return Allocation(self, size)

    def mem_get_info(self):
        return 64 * MB - self.used, 64 * MB

    def mem_get_ipc_handle(self, memory):
        return f"at {int(memory) // 2**40}".encode()

    def memcpy_dtod(self, to, source, size):
        self.log.append(("copy", size))

    def take_log(self):
        """Return what was done since."""
        done, self.log = self.log, []
        return done


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def memory_pool(driver):
    memory = FreedMemoryPool(driver)
    memory.enabled = True
    return memory


def test_what_is_freed_serves_again_for_what_is_hardly_smaller(driver, memory_pool):
    first = memory_pool.allocate(16 * MB)
    memory_pool.release(first)
    assert memory_pool.allocate(15 * MB - 3) is first
    memory_pool.release(first)
    assert int(memory_pool.allocate(13 * MB)) != int(first), "too much would be wasted"
    assert int(memory_pool.allocate(17 * MB)) != int(first)
    assert driver.take_log() == [("allocate", 16), ("allocate", 14), ("allocate", 18)]


def test_memory_goes_back_where_there_is_no_room_and_not_before(driver, memory_pool):
    for memory in [memory_pool.allocate(20 * MB), memory_pool.allocate(20 * MB)]:
        memory_pool.release(memory)
    assert driver.take_log() == [("allocate", 20)] * 2
    memory_pool.allocate(50 * MB)
    assert driver.take_log() == [("free", 20), ("free", 20), ("allocate", 50)]
    with pytest.raises(NoRoomError):
        memory_pool.allocate(50 * MB)
    memory_pool.release(memory_pool.allocate(10 * MB))
    assert memory_pool.allocate_with_retry(driver.mem_alloc, 14 * MB).size == 14 * MB, "another allocator finds it too"


def test_who_has_no_device_for_itself_keeps_nothing(driver):
    memory = FreedMemoryPool(driver)
    memory.release(memory.allocate(5 * MB + 1))
    assert driver.take_log() == [("allocate", 5), ("free", 5)]
    assert driver.used == 0
    memory.share(memory.allocate(2 * MB))
    assert memory.share(memory.allocate(2 * MB))[8:9] == b"\0", "for one copy"


def test_what_others_may_have_open_never_goes_back(driver, memory_pool):
    shared, own = memory_pool.allocate(20 * MB), memory_pool.allocate(20 * MB)
    handle = memory_pool.share(shared)
    for memory in (shared, own):
        memory_pool.release(memory)
    driver.take_log()
    with pytest.raises(NoRoomError):
        memory_pool.allocate(60 * MB)
    assert driver.take_log() == [("free", 20)]
    assert memory_pool.allocate(20 * MB) is shared, "it serves here"
    assert memory_pool.share(shared) == handle


def test_half_of_a_device_is_shared_for_good_and_more_for_one_copy(driver, memory_pool):
    handles = [memory_pool.share(memory_pool.allocate(size * MB)) for size in (20, 14, 12)]
    assert [handle[8:9] for handle in handles] == [b"\1", b"\0", b"\1"]
    assert len({handle[:8] for handle in handles}) == 1
    assert FreedMemoryPool(driver).share(driver.mem_alloc(1))[:8] != handles[0][:8], "each process has a name"


def copy_from_process(opened, name, kind, handle="x"):
    opened.copy(name * 8 + kind + handle.encode(), 1, 5)


def test_what_stays_is_opened_once_and_what_goes_is_closed_at_once(driver):
    opened = IpcMemoryCache(driver)
    for _ in range(2):
        copy_from_process(opened, b"a", b"\1")
    copy_from_process(opened, b"a", b"\0", "y")
    assert driver.take_log() == [("open", "x"), ("copy", 5), ("copy", 5), ("open", "y"), ("copy", 5), ("close", "y")]
    opened.close()
    assert driver.take_log() == [("close", "x")]


def test_who_meets_a_new_process_closes_those_that_may_have_ended(driver):
    opened = IpcMemoryCache(driver)
    copy_from_process(opened, b"a", b"\1")
    copy_from_process(opened, b"b", b"\1")
    assert driver.take_log() == [("open", "x"), ("copy", 5), ("close", "x"), ("open", "x"), ("copy", 5)]
    copy_from_process(opened, b"a", b"\1")
    copy_from_process(opened, b"b", b"\1")
    assert driver.take_log() == [("open", "x"), ("copy", 5), ("copy", 5)], "each is met once"


def test_what_cannot_be_reached_is_not_kept(driver):
    opened = IpcMemoryCache(driver)
    driver.lost.add(b"x")
    with pytest.raises(DriverError, match="invalid handle"):
        copy_from_process(opened, b"a", b"\1")
    copy_from_process(opened, b"a", b"\1", "y")
    driver.memcpy_dtod = refuse
    with pytest.raises(DriverError, match="gone"):
        copy_from_process(opened, b"a", b"\1", "y")
    assert driver.take_log() == [("open", "y"), ("copy", 5), ("close", "y")]
    opened.close()
    assert driver.take_log() == []


def refuse(to, source, size):
    raise DriverError("gone")


@pytest.mark.gpu
def test_memory_that_a_gpu_kept_shows_nothing_of_before():
    with closing(engines.create_engine("cuda")) as engine:
        assert isinstance(engine, PoolingEngine)
        engine.enable_memory_pool()
        first = engine.upload(np.arange(10_000, dtype=np.int32))
        place = int(first.memory)
        engine.free(first)
        again = engine.allocate((10_000,), np.int32)
        assert int(again.memory) == place
        assert len({*engine.download(again).tolist()}) == 1
        engine.free(again)


@pytest.mark.gpu
@pytest.mark.hardware
def test_a_gpu_copies_again_what_another_process_has_open_for_it():
    here, there = multiprocessing.Pipe()
    other = multiprocessing.get_context("spawn").Process(target=share_array, args=(there,), daemon=True)
    other.start()
    with closing(engines.create_engine("cuda")) as engine:
        assert isinstance(engine, SharingEngine)
        seen = []
        for _ in range(2):
            copy = engine.copy_shared(here.recv(), (1000,), np.int32)
            seen.append(engine.download(copy).tolist())
            engine.free(copy)
            here.send("seen")
        assert seen == [[*range(1000)], [9] * 1000]
    other.join(30)
    assert other.exitcode == 0


def share_array(pipe):
    """Share an array, and then what lies in the same memory later."""
    with closing(engines.create_engine("cuda")) as engine:
        assert isinstance(engine, SharingEngine)
        assert isinstance(engine, PoolingEngine)
        engine.enable_memory_pool()
        buffer = engine.upload(np.arange(1000, dtype=np.int32))
        for _ in range(2):
            pipe.send(engine.share(buffer))
            assert pipe.recv() == "seen"
            engine.fill(buffer, 9)
        engine.free(buffer)
