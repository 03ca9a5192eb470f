"""How a grid is cut into batches: many blocks at once for speed, one by one where blocks wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu.simulator import ir
from gpu.simulator.executor.batch import Geometry
from gpu.simulator.types import Type

# Enough lanes to drown Python's overhead in NumPy's work, few enough that a kernel's variables stay in the cache.
BATCH_LANES = 1 << 15


def cut(grid: Sequence[int], block: Sequence[int], lanes: int, blocks: range) -> Iterator[tuple[int, int]]:
    """Cut blocks of the grid into runs (first, count), each of about so many lanes, or one block.

    Batches end with rows or planes where that costs no size.
    """
    most = max(1, lanes // Geometry(block, 1).lanes)
    row, plane = grid[0], grid[0] * grid[1]
    piece = plane if plane <= most else max(1, most // row) * row if row <= most else most
    border = plane if row <= most else row
    first = blocks.start
    while first < blocks.stop:
        count = min(piece, border - first % border, blocks.stop - first)
        yield first, count
        first += count


def cluster_unit(grid: Sequence[int], cluster: Sequence[int]) -> int:
    """Return how many blocks one after the other are whole clusters: with several rows, as many rows of the grid."""
    if cluster[2] > 1:
        return grid[0] * grid[1] * cluster[2]
    return grid[0] * cluster[1] if cluster[1] > 1 else cluster[0]


def cut_clusters(
    grid: Sequence[int], cluster: Sequence[int], block: Sequence[int], lanes: int, blocks: range
) -> Iterator[tuple[int, int]]:
    """Cut blocks of the grid into runs of whole clusters, which take those around the blocks with them."""
    unit = cluster_unit(grid, cluster)
    together = max(1, lanes // (unit * Geometry(block, 1).lanes)) * unit
    first = blocks.start // unit * unit
    stop = -(-blocks.stop // unit) * unit
    while first < stop:
        count = min(together, stop - first)
        yield first, count
        first += count


def waits(statement: ir.Statement) -> bool:
    """Whether a loop waits for another thread.

    It tests memory by an atomic, or with nothing in its body, or each of its rounds does the same as the one before
    unless memory has changed.
    """
    match statement:
        case ir.Loop(condition, _, body):
            return _reads(condition, atomics_only=not _is_empty(body)) or _only_looks(statement) or waits(body)
        case ir.Block(statements):
            return any(map(waits, statements))
        case ir.If(_, then, orelse):
            return waits(then) or (orelse is not None and waits(orelse))
        case ir.Switch(_, sections):
            return any(waits(section.body) for section in sections)
    return False


def _only_looks(loop: ir.Loop) -> bool:
    """Whether a loop does nothing but load, each time from the same places, and test what it has loaded."""
    return (
        loop.step is None
        and _looks(loop.body, _assigned(loop.body), set())
        and _is_same(loop.condition, frozenset())
        and _reads(loop.body, atomics_only=False)
    )


def _looks(statement: ir.Statement, assigned: frozenset[int], given: set[int]) -> bool:
    """Whether a statement does the same in each round. `given` are the variables that this round has given a value."""
    match statement:
        case ir.Block(statements):
            return all(_looks(each, assigned, given) for each in statements)
        case ir.Declare(slot, _, value) | ir.Evaluate(ir.Assign(_, ir.Local(_, slot), value)):
            given.add(slot)
            return _is_same(value, assigned - given)
        case ir.Evaluate(ir.Fence() | ir.Const()) | ir.Jump() | ir.Return():
            return True
        case ir.If(condition, then, orelse):
            return _is_same(condition, assigned - given) and all(
                _looks(each, assigned, set(given)) for each in (then, orelse) if each is not None
            )
    return False


def _assigned(statement: ir.Statement) -> frozenset[int]:
    """Return the variables that a statement assigns to."""
    match statement:
        case ir.Block(statements):
            return frozenset().union(*map(_assigned, statements))
        case ir.Evaluate(ir.Assign(_, ir.Local(_, slot))):
            return frozenset((slot,))
        case ir.If(_, then, orelse):
            return _assigned(then) | (_assigned(orelse) if orelse is not None else frozenset())
    return frozenset()


def _is_same(expression: object, changing: frozenset[int]) -> bool:
    """Whether an expression changes no variable, nor reads one of a set."""
    return not any(
        isinstance(node, ir.Assign | ir.Update | ir.Call | ir.IndirectCall)
        or (isinstance(node, ir.Local) and node.slot in changing)
        for node in _nodes(expression)
    )


def _is_empty(statement: ir.Statement) -> bool:
    return isinstance(statement, ir.Block) and all(map(_is_empty, statement.statements))


def _reads(expression: object, *, atomics_only: bool) -> bool:
    """Whether an expression reads memory, or calls what reads it by an atomic or as volatile."""
    return any(
        isinstance(node, ir.Atomic)
        or (isinstance(node, ir.Load) and not atomics_only)
        or (isinstance(node, ir.Call) and any(_reads_strongly(called.body) for called in reachable(node.function)))
        for node in _nodes(expression)
    )


def _reads_strongly(statement: ir.Statement) -> bool:
    return any(
        isinstance(node, ir.Atomic) or (isinstance(node, ir.Element) and node.volatile) for node in _nodes(statement)
    )


def _nodes(node: object) -> Iterator[object]:
    """Yield a node and all inside of it, called functions left out, and types, which may lead back to themselves."""
    yield node
    for part in vars(node).values() if hasattr(node, "__dataclass_fields__") else ():
        for inner in part if isinstance(part, tuple) else (part,):
            if not isinstance(inner, ir.Function | Type):
                yield from _nodes(inner)


def reachable(kernel: ir.Function) -> list[ir.Function]:
    """Return a kernel and all functions that it calls, directly or not."""
    found = [kernel]
    for function in found:
        found += [called for called in function.calls if not any(called is known for known in found)]
    return found
