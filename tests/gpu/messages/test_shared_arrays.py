from __future__ import annotations

import errno
import gc
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.messages.shared_arrays import SharedArray, SharedFolder


@pytest.fixture
def folder():
    made = SharedFolder()
    yield made
    made.close()


def names(folder: SharedFolder) -> list[str]:
    return sorted(path.name for path in Path(folder.path).iterdir())


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 3, 4), (0,), (4, 0)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.int64, bool])
def test_what_is_put_comes_back_in_another_process_s_hands(folder: SharedFolder, shape: tuple[int, ...], dtype):
    values = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    handle = pickle.loads(pickle.dumps(folder.put(values)))
    found = handle.open()
    assert found.shape == shape
    assert found.dtype == dtype
    assert type(found) is np.ndarray
    assert np.array_equal(found, values)


def test_a_scattered_array_is_put_as_it_looks(folder: SharedFolder):
    values = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-1].T
    assert np.array_equal(folder.put(values).open(), values)


def test_two_who_open_see_the_same_memory(folder: SharedFolder):
    handle = folder.create((2, 2), np.int32)
    assert not handle.open().any()
    handle.open(writable=True)[1, 1] = 7
    assert handle.open()[1, 1] == 7


def test_what_is_opened_to_read_cannot_be_written(folder: SharedFolder):
    array = folder.put(np.ones(3)).open()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 2


@pytest.mark.usefixtures("only_new_garbage")
def test_an_adopted_file_goes_with_its_handle_and_views_stay_valid(folder: SharedFolder):
    handle = folder.adopt(folder.put(np.arange(5)))
    array = handle.open()[2:]
    del handle
    gc.collect()
    assert names(folder) == []
    assert array.tolist() == [2, 3, 4]


@pytest.mark.usefixtures("only_new_garbage")
def test_an_array_adopted_twice_goes_with_the_last_handle(folder: SharedFolder):
    first = folder.adopt(folder.put(np.arange(5)))
    second = folder.adopt(pickle.loads(pickle.dumps(first)))
    del first
    gc.collect()
    assert second.open().tolist() == [0, 1, 2, 3, 4]
    del second
    gc.collect()
    assert names(folder) == []


def test_sweep_removes_what_a_label_left_but_not_what_is_adopted(folder: SharedFolder):
    theirs = SharedFolder(folder.path, label="engine1")
    kept = folder.adopt(theirs.put(np.arange(3)))
    theirs.put(np.arange(3))
    SharedFolder(folder.path, label="engine12").put(np.arange(3))
    folder.put(np.arange(3))
    folder.sweep("engine1")
    assert names(folder) == ["engine1-0", "engine12-0", "host-0"]
    assert kept.open().tolist() == [0, 1, 2]


def test_discard_removes_at_once_and_forgives_a_second_time(folder: SharedFolder):
    handle = folder.put(np.arange(3))
    folder.discard(handle)
    folder.discard(handle)
    assert names(folder) == []


def test_only_the_maker_removes_the_folder(folder: SharedFolder):
    SharedFolder(folder.path, label="engine1").close()
    assert Path(folder.path).is_dir()
    folder.close()
    folder.close()
    assert not Path(folder.path).exists()


def test_only_the_user_may_look_into_the_folder(folder: SharedFolder):
    assert os.name != "posix" or Path(folder.path).stat().st_mode & 0o077 == 0


def test_no_room_is_told_and_leaves_nothing(folder: SharedFolder, monkeypatch: pytest.MonkeyPatch):
    def full(*anything: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(InputError, match=r"There is no space for an array of 3 MiB in .*\.") as caught:
        folder.create((3, 2**20), np.uint8)
    assert "smaller input" in caught.value.advice
    assert names(folder) == []


def test_more_than_there_is_is_refused_before_it_kills(folder: SharedFolder):
    if not folder.path.startswith("/dev/shm"):
        pytest.skip("elsewhere the system may reserve by writing")
    with pytest.raises(InputError, match="There is no space for an array of 1073741824 MiB"):
        folder.create((2**30, 2**20), np.uint8)


def test_a_file_system_that_cannot_reserve_is_used_all_the_same(folder: SharedFolder, monkeypatch: pytest.MonkeyPatch):
    def refuse(*anything: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    assert folder.put(np.arange(3)).open().tolist() == [0, 1, 2]


def test_a_file_in_use_is_removed_later_where_the_system_refuses(folder: SharedFolder, monkeypatch: pytest.MonkeyPatch):
    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, "The process cannot access the file")

    handle = folder.put(np.arange(3))
    with monkeypatch.context() as windows:
        windows.setattr(os, "unlink", refuse)
        folder.discard(handle)
    assert names(folder) == ["host-0"]
    keep = folder.adopt(folder.put(np.arange(3)))
    assert names(folder) == ["host-1"]
    assert isinstance(keep, SharedArray)
