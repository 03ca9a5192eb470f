"""How a grid is cut into gangs: many blocks at once for speed, one by one where blocks wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu.simulator import ir
from gpu.simulator.executor.lanes import Geometry

# Enough lanes to drown Python's overhead in NumPy's work, few enough that a kernel's variables stay in the cache.
GANG_LANES = 1 << 15


def cut(grid: Sequence[int], block: Sequence[int], lanes: int) -> Iterator[tuple[int, int]]:
    """Cut the grid into runs of blocks (first, count), each of about so many lanes, or one block.

    Gangs end with rows or planes where that costs no size.
    """
    most = max(1, lanes // Geometry(block, 1).lanes)
    row, plane = grid[0], grid[0] * grid[1]
    piece = plane if plane <= most else max(1, most // row) * row if row <= most else most
    border = plane if row <= most else row
    total = plane * grid[2]
    first = 0
    while first < total:
        blocks = min(piece, border - first % border)
        yield first, blocks
        first += blocks


def waits(statement: ir.Statement) -> bool:
    """Whether a loop waits for another thread: it tests memory by an atomic, or with nothing in its body."""
    match statement:
        case ir.Loop(condition, _, body):
            return _reads(condition, atomics_only=not _is_empty(body)) or waits(body)
        case ir.Block(statements):
            return any(map(waits, statements))
        case ir.If(_, then, orelse):
            return waits(then) or (orelse is not None and waits(orelse))
        case ir.Switch(_, sections):
            return any(waits(section.body) for section in sections)
    return False


def _is_empty(statement: ir.Statement) -> bool:
    return isinstance(statement, ir.Block) and all(map(_is_empty, statement.statements))


def _reads(expression: object, *, atomics_only: bool) -> bool:
    """Whether an expression reads memory."""
    if isinstance(expression, ir.Atomic) or (isinstance(expression, ir.Load) and not atomics_only):
        return True
    parts = vars(expression).values() if hasattr(expression, "__dataclass_fields__") else ()
    return any(
        _reads(inner, atomics_only=atomics_only)
        for part in parts
        for inner in (part if isinstance(part, tuple) else (part,))
        if not isinstance(inner, ir.Function)
    )


def reachable(kernel: ir.Function) -> list[ir.Function]:
    """Return a kernel and all functions that it calls, directly or not."""
    found = [kernel]
    for function in found:
        found += [called for called in function.calls if not any(called is known for known in found)]
    return found
