"""The lockstep executor with a recorder beside it: what stores, calls and declares keeps nodes beside its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.executor.address import Address, as_one_access, from_number
from gpu.simulator.executor.expressions import called_functions, limit_depth, own_object
from gpu.simulator.executor.frame import Evaluator, Frame, Leaves, assign_local
from gpu.simulator.executor.lanes import BlockBatch, Mask, union
from gpu.simulator.executor.lockstep import CompiledFunction, Step, local_memory
from gpu.simulator.executor.memory import LocalMemory, Site
from gpu.simulator.executor.observe import Step as Told
from gpu.simulator.trace.recorded_memory import NONE
from gpu.simulator.trace.tracing_expressions import TracingExpressions
from gpu.simulator.trace.tracing_frame import (
    TracingFrame,
    joined,
    merged_nodes,
    node_of,
    of_leaves,
    set_node,
    variable_nodes,
)
from gpu.simulator.types import INT64, Pointer, Scalar, has_union, leaves, vector_size


class TracingFunction(CompiledFunction):
    """A kernel or `__device__` function, ready to run while a recorder looks on."""

    def __init__(self, function: ir.Function, compiler: TracingCompiler) -> None:
        super().__init__(function, compiler)
        self._recorder = compiler.recorder

    def call_with_nodes(self, caller: Frame, mask: Mask, arguments: list[Any], nodes: list[Any]) -> Any:
        """Run a `__device__` function; the caller's `node` becomes that of the result."""
        frame = TracingFrame(
            caller.batch, self.function.slots, caller.kernel or caller, caller.globals, caller.depth + 1
        )
        self._enter(frame, mask, arguments, nodes)
        set_node(caller, frame.result_node)
        return frame.result

    def launch(self, batch: BlockBatch, arguments: list[Any], variables: dict[str, Address], mask: Mask) -> Mask | None:
        self._recorder.arguments(self.function.parameters, arguments, variables)
        frame = TracingFrame(batch, self.function.slots, None, variables, 0)
        return self._enter(frame, mask, arguments, [NONE] * len(arguments))

    def _enter(self, frame: TracingFrame, mask: Mask, arguments: list[Any], nodes: list[Any]) -> Mask | None:
        before = self._recorder.enter(self.function, is_kernel=frame.kernel is None)
        for slot, (value, node) in enumerate(zip(arguments, nodes, strict=True)):
            frame.nodes[slot] = node
            self._recorder.parameter(slot, value, node, mask)
        through = self._run(frame, mask, arguments)
        self._recorder.leave(before)
        return through


class TracingCompiler(TracingExpressions):
    """Compiles what LockstepCompiler compiles, so that a recorder sees it run.

    Parameters
    ----------
    recorder : Recorder
        It must be among the observers of the launch too.
    """

    def function(self, function: ir.Function) -> TracingFunction:
        if id(function) not in self._functions:
            self._functions[id(function)] = TracingFunction(function, self)
        found = self._functions[id(function)]
        assert isinstance(found, TracingFunction)
        return found

    def storing(self, expression: ir.Expression) -> Evaluator:
        match expression:
            case ir.Assign(_, place, value):
                return self._assign_with_nodes(place, self.expression(value))
            case ir.Update():
                return self._update_with_nodes(expression)
            case ir.Atomic():
                return self._atomic_with_nodes(expression)
            case ir.Call(_, function, arguments):
                return self._call_with_nodes(function, arguments)
            case ir.IndirectCall():
                return self._indirect_with_nodes(expression)
            case ir.Temporary():
                return self._temporary(expression)
        raise AssertionError(expression)

    # Memory.

    def _where(self, place: ir.Element) -> Callable[[Frame, Mask], tuple[Address, Any]]:
        """Return what gives the address and the index of a place."""
        size = place.type.size
        simple = isinstance(place.type, Scalar)
        with self.nodes_unwanted(True):
            pointer = self.expression(place.pointer)
            index = self.expression(place.index) if place.index is not None else None

        def run(frame: Frame, mask: Mask) -> tuple[Address, Any]:
            address = pointer(frame, mask)
            at = index(frame, mask) if index is not None else None
            if at is not None and not simple:
                return address.moved(at, size), None
            return address, at

        return run

    def load_with_nodes(self, place: ir.Element) -> Evaluator:
        where, parts, site = self._where(place), leaves(place.type), Site(place.position, "read", place.volatile)
        vector = vector_size(place.type)
        whole = not isinstance(place.type, Scalar | Pointer)

        def run(frame: Frame, mask: Mask) -> Any:
            address, at = where(frame, mask)
            values, nodes = self._fetch(frame, address, at, parts, mask, site, vector)
            set_node(frame, nodes if whole else nodes[0])
            return values if whole else values[0]

        return run

    def _fetch(
        self, frame: Frame, address: Address, at: Any, parts: Leaves, mask: Mask, site: Site, vector: int = 0
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the leaves of a value in memory, and their nodes."""
        recorder, values, nodes = self.recorder, [], []
        with as_one_access(frame.batch, address, vector, mask, site) as done:
            for offset, leaf in parts:
                place = address.moved(offset, 1) if offset else address
                recorder.outgoing = []
                dtype = INT64.dtype if isinstance(leaf, Pointer) else leaf.dtype
                value = place.load(frame.batch, at, dtype, mask, site)
                values.append(from_number(value) if isinstance(leaf, Pointer) else value)
                nodes.append(joined([(part, each[0]) for part, each in recorder.outgoing]))
            recorder.outgoing = []
            done(tuple(values))
        if recorder.outgoing:
            nodes = list(recorder.outgoing[0][1][: len(parts)])
        recorder.outgoing = None
        return tuple(values), tuple(nodes)

    def _put(
        self,
        frame: Frame,
        address: Address,
        at: Any,
        parts: Leaves,
        value: tuple[Any, Any],
        mask: Mask,
        site: Site,
        vector: int = 0,
    ) -> None:
        """Write the leaves of a value to memory, with their nodes."""
        recorder = self.recorder
        new, node = value
        values = new if isinstance(new, tuple) else (new,)
        nodes = of_leaves(node, len(values))
        with as_one_access(frame.batch, address, vector, mask, site) as done:
            for (offset, leaf), part, made in zip(parts, values, nodes, strict=True):
                place = address.moved(offset, 1) if offset else address
                recorder.incoming = (made,)
                dtype = INT64.dtype if isinstance(leaf, Pointer) else leaf.dtype
                place.store(frame.batch, at, dtype, part.number() if isinstance(leaf, Pointer) else part, mask, site)
            recorder.incoming = nodes
            done(values)

    def _assign_with_nodes(self, place: ir.Place, value: Evaluator) -> Evaluator:
        if isinstance(place, ir.Local):
            slot = place.slot

            def run_local(frame: Frame, mask: Mask) -> Any:
                new = value(frame, mask)
                self._keep(frame, slot, new, node_of(frame), mask)
                return new

            return run_local
        where, parts, site = self._where(place), leaves(place.type), Site(place.position, "write", place.volatile)
        vector = vector_size(place.type)

        def run(frame: Frame, mask: Mask) -> Any:
            new = value(frame, mask)
            node = node_of(frame)
            address, at = where(frame, mask)
            self._put(frame, address, at, parts, (new, node), mask, site, vector)
            set_node(frame, node)
            return new

        return run

    def _keep(self, frame: Frame, slot: int, new: Any, node: Any, mask: Mask) -> None:
        """Give a variable a new value in some lanes."""
        nodes = variable_nodes(frame)
        if frame.owners[slot] is mask:
            frame.values[slot], nodes[slot] = new, node
        else:
            frame.values[slot] = assign_local(frame.values[slot], new, mask)
            nodes[slot] = merged_nodes(nodes[slot], node, mask)
        self.recorder.register(slot, new, node, mask)

    def _update_with_nodes(self, expression: ir.Update) -> Evaluator:
        change, value = self._change(expression), self.expression(expression.value)
        gives_old, place, op, recorder = expression.gives_old, expression.place, expression.op, self.recorder
        moves = isinstance(expression.compute, Pointer)

        def made(frame: Frame, old: Any, old_node: Any, by: Any, by_node: Any, mask: Mask) -> tuple[Any, Any]:
            new = change(old, by)
            node = NONE if moves else recorder.operation(op, mask, new, [old_node, by_node], [old, by])
            return new, node

        if isinstance(place, ir.Local):
            slot = place.slot

            def run_local(frame: Frame, mask: Mask) -> Any:
                by = value(frame, mask)
                by_node = node_of(frame)
                old, old_node = frame.values[slot], variable_nodes(frame)[slot]
                new, node = made(frame, old, old_node, by, by_node, mask)
                self._keep(frame, slot, new, node, mask)
                set_node(frame, old_node if gives_old else node)
                return old if gives_old else new

            return run_local
        where, parts = self._where(place), leaves(place.type)
        read, write = Site(place.position, "read", place.volatile), Site(place.position, "write", place.volatile)

        def run(frame: Frame, mask: Mask) -> Any:
            by = value(frame, mask)
            by_node = node_of(frame)
            address, at = where(frame, mask)
            (old,), (old_node,) = self._fetch(frame, address, at, parts, mask, read)
            new, node = made(frame, old, old_node, by, by_node, mask)
            self._put(frame, address, at, parts, (new, node), mask, write)
            set_node(frame, old_node if gives_old else node)
            return old if gives_old else new

        return run

    def _atomic_with_nodes(self, expression: ir.Atomic) -> Evaluator:
        where, recorder = self._where(expression.place), self.recorder
        evaluators = [self.expression(argument) for argument in expression.arguments]
        site = Site(expression.place.position, "atomic")
        op, dtype = expression.op, expression.type.dtype

        def run(frame: Frame, mask: Mask) -> Any:
            address, at = where(frame, mask)
            operands, nodes = [], []
            for evaluate in evaluators:
                operands.append(evaluate(frame, mask))
                nodes.append(node_of(frame))
            old = address.atomic(frame.batch, at, dtype, op, operands, mask, site, True)
            set_node(frame, recorder.atomic(frame.batch, op, operands, nodes, old))
            return old

        return run

    def _temporary(self, expression: ir.Temporary) -> Evaluator:
        type = expression.type.element
        parts = leaves(type)
        value = self.expression(expression.value) if expression.value is not None else None
        site, punned = Site(SourcePosition("", 0), "write"), has_union(type)

        def run(frame: Frame, mask: Mask) -> Address:
            address = Address(LocalMemory("a temporary value", type.size, frame.batch.geometry.lanes, punned=punned))
            if value is not None:
                made = value(frame, mask)
                self._put(frame, address, None, parts, (made, node_of(frame)), mask, site)
            set_node(frame, NONE)
            return address

        return run

    def _call_with_nodes(self, function: ir.Function, arguments: tuple[ir.Expression, ...]) -> Evaluator:
        compiled = self.function(function)
        evaluators = [self.expression(argument) for argument in arguments]

        def run(frame: Frame, mask: Mask) -> Any:
            limit_depth(frame, mask, function)
            values, nodes = [], []
            for evaluate in evaluators:
                values.append(evaluate(frame, mask))
                nodes.append(node_of(frame))
            return compiled.call_with_nodes(frame, mask, values, nodes)

        return run

    def _indirect_with_nodes(self, expression: ir.IndirectCall) -> Evaluator:
        number = self.quietly(expression.function)
        evaluators = [self.expression(argument) for argument in expression.arguments]

        def run(frame: Frame, mask: Mask) -> Any:
            numbers = number(frame, mask)
            given, nodes = [], []
            for evaluate in evaluators:
                given.append(evaluate(frame, mask))
                nodes.append(node_of(frame))
            result: Any = None
            node: Any = NONE
            for function, lanes in called_functions(frame, mask, numbers, expression):
                limit_depth(frame, lanes, function)
                own = own_object(function)
                made = self.function(function).call_with_nodes(
                    frame, lanes, [*own, *given], [*([NONE] * len(own)), *nodes]
                )
                result, node = assign_local(result, made, lanes), merged_nodes(node, node_of(frame), lanes)
            set_node(frame, node)
            return result

        return run

    # Statements.

    def _evaluate(self, statement: ir.Evaluate) -> Step:
        with self.nodes_unwanted(True):
            return super()._evaluate(statement)

    def _if(self, statement: ir.If) -> Step:
        self._conditions.add(id(statement.condition))
        return super()._if(statement)

    def _switch(self, statement: ir.Switch) -> Step:
        self._conditions.add(id(statement.value))
        return super()._switch(statement)

    def _loop(self, statement: ir.Loop) -> Step:
        if statement.condition is not None:
            self._conditions.add(id(statement.condition))
        if statement.step is not None:
            self._advances[id(statement.step)] = statement.position
        return super()._loop(statement)

    def _declare(self, statement: ir.Declare) -> Step:
        slot, type, recorder = statement.slot, statement.type, self.recorder
        empty = type.dtype.type(0) if isinstance(type, Scalar) else Address(None)
        run = self.expression(statement.value) if statement.value is not None else None
        told = Told(statement.position, "declare", self._work.of(statement))

        def step(frame: Frame, mask: Mask) -> Mask:
            frame.batch.begin(told, mask)
            set_node(frame, NONE)
            value = run(frame, mask) if run is not None else empty
            frame.values[slot], frame.owners[slot] = value, mask
            variable_nodes(frame)[slot] = node_of(frame)
            recorder.register(slot, value, node_of(frame), mask)
            return mask

        return step

    def _declare_memory(self, statement: ir.DeclareMemory) -> Step:
        slot, size, name = statement.slot, statement.size, statement.name
        zeroed, punned = statement.zeroed, statement.punned
        values = [(offset, leaves(value.type), self.expression(value)) for offset, value in statement.values]
        site = Site(statement.position, "write")
        told = Told(statement.position, "declare", self._work.of(statement))

        def step(frame: Frame, mask: Mask) -> Mask:
            frame.batch.begin(told, mask)
            address = Address(local_memory(frame.batch, statement, name, size, zeroed=zeroed, punned=punned))
            for offset, parts, evaluate in values:
                value = evaluate(frame, mask)
                self._put(frame, address.moved(offset, 1), None, parts, (value, node_of(frame)), mask, site)
            frame.values[slot], frame.owners[slot] = address, mask
            return mask

        return step

    def _return(self, statement: ir.Return) -> Step:
        run = self.expression(statement.value) if statement.value is not None else None
        told = Told(statement.position, "return", self._work.of(statement))

        def step(frame: Frame, mask: Mask) -> None:
            assert isinstance(frame, TracingFrame)
            frame.batch.begin(told, mask)
            if run is not None:
                result = run(frame, mask)
                if frame.result is None:
                    frame.result, frame.result_node = result, node_of(frame)
                else:
                    frame.result = assign_local(frame.result, result, mask)
                    frame.result_node = merged_nodes(frame.result_node, node_of(frame), mask)
            frame.returned = union(frame.returned, mask)

        return step
