"""Delayed streams: what runs when a program waits, and what must not have run yet."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from gpu.hosts.program.delayed_streams import DelayedStreams

A, B, FREE = 16, 32, 48
ORDERS = ("late", "late-reversed", "late-interleaved")


class Log:
    """Delayed streams whose operations append their names."""

    def __init__(self, order: str = "late") -> None:
        self.done: list[str] = []
        self.streams = DelayedStreams(order)
        for stream in (A, B, FREE):
            self.streams.add_stream(stream, is_non_blocking=stream == FREE)

    def submit(self, stream: int, name: str) -> None:
        self.streams.submit(stream, partial(self.done.append, name))

    def record(self, event: int, stream: int) -> None:
        self.streams.record_event(event, stream, partial(self.done.append, f"event {event}"))


def test_nothing_runs_until_the_program_waits_for_it() -> None:
    log = Log()
    for stream, name in ((A, "a1"), (B, "b1"), (A, "a2")):
        log.submit(stream, name)
    assert not log.done
    log.streams.finish_stream(A)
    assert log.done == ["a1", "a2"]
    log.streams.finish_stream(A)
    log.streams.finish_all()
    assert log.done == ["a1", "a2", "b1"]


@pytest.mark.parametrize(
    ("order", "done"),
    [
        ("late", ["a1", "a2", "b1", "b2"]),
        ("late-reversed", ["b1", "b2", "a1", "a2"]),
        ("late-interleaved", ["a1", "b1", "a2", "b2"]),
    ],
)
def test_a_wait_for_all_runs_streams_in_each_order(order: str, done: list[str]) -> None:
    log = Log(order)
    for stream, name in ((A, "a1"), (A, "a2"), (B, "b1"), (B, "b2")):
        log.submit(stream, name)
    log.streams.finish_all()
    assert log.done == done


@pytest.mark.parametrize(
    ("order", "issued", "done"),
    [
        ("late-first", ["b1"], ["b1", "a1", "event 7", "b2"]),
        ("late-others", ["a1", "event 7"], ["a1", "event 7", "b1", "b2"]),
    ],
)
def test_some_streams_are_late_and_others_wait_only_for_their_events(
    order: str, issued: list[str], done: list[str]
) -> None:
    log = Log(order)
    log.submit(A, "a1")
    log.record(7, A)
    log.submit(B, "b1")
    log.streams.wait_for_event(B, 7)
    log.submit(B, "b2")
    assert log.done == issued
    log.streams.finish_stream(B)
    assert log.done == done


def test_an_event_orders_only_what_comes_after_the_wait() -> None:
    log = Log("late-reversed")
    log.submit(A, "a1")
    log.record(7, A)
    log.submit(A, "a2")
    log.submit(B, "b1")
    log.streams.wait_for_event(B, 7)
    log.submit(B, "b2")
    log.streams.finish_event(7)
    assert log.done == ["a1", "event 7"]
    log.streams.finish_all()
    assert log.done == ["a1", "event 7", "b1", "b2", "a2"]


def test_a_wait_for_a_stream_includes_the_event_for_which_it_waits() -> None:
    log = Log()
    log.submit(A, "a")
    log.record(7, A)
    log.submit(B, "b")
    log.streams.wait_for_event(B, 7)
    log.streams.finish_stream(B)
    assert log.done == ["a", "event 7", "b"]


def test_an_event_that_was_never_recorded_orders_nothing() -> None:
    log = Log()
    log.streams.wait_for_event(B, 9)
    log.submit(A, "a")
    log.submit(B, "b")
    log.streams.finish_event(9)
    assert not log.done
    log.streams.finish_stream(B)
    assert log.done == ["b"]


@pytest.mark.parametrize("legacy", [0, 1])
def test_the_default_stream_waits_for_blocking_streams_and_they_for_it(legacy: int) -> None:
    log = Log("late-reversed")
    log.submit(A, "a")
    log.submit(FREE, "free")
    log.submit(legacy, "default")
    log.submit(B, "b")
    log.streams.finish_stream(B)
    assert log.done == ["a", "default", "b"]
    log.streams.finish_stream(legacy)
    assert log.done == ["a", "default", "b"]
    log.streams.finish_all()
    assert log.done[-1] == "free"


@pytest.mark.parametrize("seed", range(20))
def test_every_operation_follows_its_predecessors_and_runs_once(seed: int) -> None:
    generator = np.random.default_rng(seed)
    log, before, last = Log(ORDERS[seed % 3]), {}, dict.fromkeys((A, B, FREE), "")
    for number in range(60):
        stream = int(generator.choice((A, B, FREE)))
        match generator.integers(5):
            case 0:
                log.streams.finish_stream(stream)
                assert last[stream] in ("", *log.done)
            case 1:
                log.record(number, stream)
                before[f"event {number}"] = {last[stream]}
                last[stream] = f"event {number}"
                other = int(generator.choice((A, B, FREE)))
                log.streams.wait_for_event(other, number)
                log.submit(other, f"after {number}")
                before[f"after {number}"] = {f"event {number}", last[other]}
                last[other] = f"after {number}"
            case _:
                log.submit(stream, str(number))
                before[str(number)] = {last[stream]}
                last[stream] = str(number)
    log.streams.finish_all()
    assert sorted(log.done) == sorted(before)
    positions = {name: index for index, name in enumerate(["", *log.done])}
    assert all(positions[each] < positions[name] for name, needed in before.items() for each in needed)


def test_a_query_finds_delayed_operations_first_and_then_lets_them_run() -> None:
    log = Log()
    log.submit(A, "a1")
    log.record(7, A)
    log.submit(A, "a2")
    assert not log.streams.query_event(7)
    assert not log.streams.query_stream(A)
    assert not log.done
    assert log.streams.query_event(7)
    assert log.done == ["a1", "event 7"]
    assert log.streams.query_stream(A)
    assert log.streams.query_stream(B)
    assert log.done == ["a1", "event 7", "a2"]


def test_operations_of_a_withheld_stream_never_run() -> None:
    log = Log()
    log.streams.withheld = 2
    for stream, name in ((0, "d"), (A, "a1"), (B, "b1"), (A, "a2"), (B, "b2")):
        log.submit(stream, name)
    log.streams.finish_all()
    assert log.done == ["d", "a1", "a2"]
