"""Traces for the tests: how to make one, and what must be true of any."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from gpu.recording.ancestry import Ancestry, TraceNode
from gpu.recording.trace import Trace
from gpu.simulator.simulated_module import SimulatedModule, TraceSettings
from gpu.simulator.trace.recorder import MAXIMUM_LANE_EVENTS
from tests.gpu.simulator.kernel_runner import Array, Extent, _to_three_dimensions

OPERATIONS: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "^": np.bitwise_xor,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "&&": np.logical_and,
    "||": np.logical_or,
    "<<": lambda left, right: np.left_shift(left, right.astype(left.dtype)),
    ">>": lambda left, right: np.right_shift(left, right.astype(left.dtype)),
    "%": lambda left, right: np.fmod(left, right),
    "min": np.minimum,
    "max": np.maximum,
    "fminf": np.fmin,
    "fmaxf": np.fmax,
    "sqrtf": np.sqrt,
    "atomic add": np.add,
    "atomic max": np.maximum,
    "!": np.logical_not,
}


def trace_kernel(
    source: str,
    arguments: Sequence[Any],
    *,
    grid: Extent = 1,
    block: Extent = 32,
    kernel: str = "k",
    max_lane_events: int = MAXIMUM_LANE_EVENTS,
    **options: Any,
) -> tuple[Trace, list[Array]]:
    """Trace a kernel, and check that it computes what it computes untraced; return the trace and the arrays."""
    module = SimulatedModule(source, Path("kernel.cu"), {})
    results = []
    for traced in (True, False):
        arrays = [np.array(given) for given in arguments if isinstance(given, np.ndarray)]
        left = iter(arrays)
        bound = [next(left).view(np.uint8).reshape(-1) if isinstance(x, np.ndarray) else x for x in arguments]
        shared_bytes = options.get("shared_bytes", 0)
        if traced:
            extents = _to_three_dimensions(grid), _to_three_dimensions(block)
            made = module.trace(kernel, *extents, bound, TraceSettings(max_lane_events), **options)
        else:
            module.kernel(kernel).launch(
                _to_three_dimensions(grid), _to_three_dimensions(block), bound, shared_bytes=shared_bytes
            )
        results.append(arrays)
    for with_trace, without in zip(*results, strict=True):
        assert with_trace.tobytes() == without.tobytes()
    for number, array in enumerate(results[0]):
        if not made.stop_reason:
            assert made.array(number, len(made.events)).tobytes() == array.tobytes()
    return made, results[0]


def find_ancestry(made: Trace, array: str | int, element: int, block: int | None = None) -> Ancestry:
    """Return what made an element, as it is at the end, after checking every value on the way."""
    end = len(made.events)
    found = made.ancestry(made.find_node(array, element, end, block))
    check_values(found)
    if found.root:
        are_identical(found.nodes[found.root].value, made.array(array, end, block)[element])
    return found


def check_values(found: Ancestry) -> None:
    """Compute each operation again from its sources' values."""
    for node in found.nodes.values():
        if node.operator in OPERATIONS and len(node.sources) == 2:
            factors = [_find_factors(found, source) for source in node.sources]
            check_operation(node.operator, [operand_value(found, node, n) for n in range(2)], factors, node.value)
        for source in node.sources:
            assert source == 0 or source < node.number
            assert source == 0 or found.nodes[source].event <= node.event


def _find_factors(found: Ancestry, number: int) -> list[Any]:
    is_product = number and found.nodes[number].operator == "*"
    return [operand_value(found, found.nodes[number], n) for n in range(2)] if is_product else []


def check_operation(operator: str, operands: Sequence[Any], factors: Sequence[Sequence[Any]], value: Any) -> None:
    """Compute an operation again; a sum or difference may round once if an operand is a product of factors."""
    for place, pair in enumerate(factors):
        if operator in ("+", "-") and len(pair) == 2 and np.asarray(value).dtype.kind == "f":
            (x, y), other = map(type(value), pair), type(value)(operands[1 - place])
            if operator == "-" and place:
                x = -x
            elif operator == "-":
                other = -other
            if fma(x, y, other) == value:
                return
    are_identical(OPERATIONS[operator](*operands), value)


def fma(x: Any, y: Any, z: Any) -> Any:
    """Return x * y + z, rounded once: of the candidates around its double, the nearest one."""
    dtype, exact = type(x), Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    first = dtype(float(exact))
    candidates = (first, np.nextafter(first, dtype(-np.inf)), np.nextafter(first, dtype(np.inf)))
    return min(candidates, key=lambda each: abs(Fraction(float(each)) - exact))


def operand_value(found: Ancestry, node: TraceNode, place: int) -> Any:
    source = node.sources[place]
    value = found.nodes[source].value if source else node.operands[place]
    # A source may have been converted on its way.
    return value if node.value.dtype == bool else value.astype(node.value.dtype)


def are_identical(first: Any, second: Any) -> None:
    assert np.asarray(first, np.asarray(second).dtype).tobytes() == np.asarray(second).tobytes(), (first, second)


def input_elements(found: Ancestry) -> list[int]:
    """Return the inputs' elements, ascending."""
    return sorted(node.element for node in found.inputs)


def list_operators(found: Ancestry) -> list[str]:
    return sorted(node.operator for node in found.operations)


def check_states(made: Trace) -> None:
    """Replay all accesses and variables on plain arrays; every state must be the trace's own at that step.

    What threads keep in registers they need not find in memory.
    """
    kept = made.schedule.startswith("cached")
    held = {each.number: made.array(each.number, 0).copy() for each in made.arrays}
    nodes: dict[tuple[int, int], int] = {}
    known: dict[tuple[int, str, int], Any] = {}
    frames: set[int] = set()
    # Of two variables of one name in different scopes the trace shows the one that was written last.
    names = [name for function in made.data.functions for name in function.variables.values()]
    doubled = {name for name in names if names.count(name) > 1}
    for event in made.events:
        for number, content in held.items():
            assert made.array(number, event.number).tobytes() == content.tobytes()
        registers = made.registers(event.number)
        for name, register in registers.items():
            if name in doubled:
                continue
            for lane in np.flatnonzero(register.defined):
                # Its parameters; lanes that go on their own begin at any time.
                begins = made.lanes_per_part is not None and (event.frame, name, int(lane)) not in known
                if event.frame not in frames or begins:
                    known[event.frame, name, int(lane)] = register.values[lane]
                are_identical(register.values[lane], known[event.frame, name, int(lane)])
        frames.add(event.frame)
        for access in event.accesses:
            for place, lane in enumerate(access.lanes):
                number, element = int(access.arrays[place]), int(access.elements[place])
                at = (int(lane), element) if made.arrays[number].space == "local" else element
                key = (number, int(lane) * made.arrays[number].count + element if isinstance(at, tuple) else element)
                if access.action == "atomic" or (access.action == "read" and not kept):
                    are_identical(held[number][at], access.values[place])
                if access.action == "read" and key in nodes and not kept:
                    assert nodes[key] == access.nodes[place]
                if access.action != "read":
                    held[number][at] = access.results[place]
                    nodes[key] = int(access.nodes[place])
        for name, register in event.registers.items():
            for lane in np.flatnonzero(register.defined):
                known[event.frame, name, int(lane)] = register.values[lane]
    for number, content in held.items():
        assert made.array(number, len(made.events)).tobytes() == content.tobytes()


def running_lanes(made: Trace, step: int) -> Array:
    """Return which lanes of its batch execute an event: bool."""
    event = made.events[step]
    return _to_bits(made, event.batch, [event.lanes])


def returned_lanes(made: Trace, step: int) -> Array:
    """Return which lanes of the batch of an event have returned from the kernel before it: bool."""
    batch = made.events[step].batch
    kernel = next(event for event in made.events if event.batch == batch).frame
    before = made.events[:step]
    return _to_bits(made, batch, [each.lanes for each in before if each.kind == "return" and each.frame == kernel])


def waiting_lanes(made: Trace, step: int) -> Array:
    """Return which lanes of the batch of an event wait at a barrier just before it: bool.

    Only where warps are shuffled does anyone wait: in lockstep all come to a barrier at once.
    """
    batch = made.events[step].batch
    waits = _to_bits(made, batch, [])
    passed = [each for each in made.data.barriers if each["batch"] == batch]
    for event in made.events[: step + 1]:
        # Those who met go on before the event that came next.
        for each in passed:
            if each["before"] == event.number:
                waits[made.lanes.mask_lanes(int(each["mask"]))] = False
        if event.batch == batch and event.number < step:
            waits[event.lanes] = event.kind == "barrier"
    return waits


def _to_bits(made: Trace, batch: int, lanes: Sequence[Array]) -> Array:
    bits = np.zeros(made.lanes.count(batch), bool)
    for each in lanes:
        bits[each] = True
    return bits
