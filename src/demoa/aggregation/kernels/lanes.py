"""Loops over rows of a block of columns, with a whole register of columns in each step.

The compiler does not find these by itself: the loops over columns are short, and the arrays might overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # it takes the typing context away from a function's arguments, which no type checker knows

LANES = 32
"""Columns of a block."""

UNROLLED = 4
"""Rows per turn of a loop."""

SHORT = ir.IntType(16)
SHORTS = ir.VectorType(SHORT, LANES)
MASK = ir.IntType(LANES)
DOUBLES = ir.VectorType(ir.DoubleType(), LANES)


READ, SECOND_CACHE, DATA = 0, 2, 1
"""What `fetch` asks for, in the words of llvm.prefetch."""


class _Emitter:
    """Code for arrays whose rows are a block of columns, (m, LANES), or one row, (LANES,)."""

    def __init__(self, context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> None:
        self.builder = builder
        self._arrays = [
            context.make_array(kind)(context, builder, value=value) if isinstance(kind, types.Array) else None
            for kind, value in zip(signature.args, args, strict=True)
        ]
        self._kinds = signature.args

    def vector(self, place: int) -> ir.VectorType:
        """Return the type of a row of an array."""
        bits = self._kinds[place].dtype.bitwidth
        number = {32: ir.FloatType(), 64: ir.DoubleType()}
        return SHORTS if bits == 16 else ir.VectorType(number[bits], LANES)

    def rows(self, place: int) -> Any:
        """Return how many rows an array has."""
        return self.builder.extract_value(self._arrays[place].shape, 0)  # type: ignore[union-attr]

    def load(self, place: int, row: Any = None, kind: ir.VectorType | None = None) -> Any:
        """Return a row of an array, in one register."""
        return self.builder.load(self._at(place, row, kind), align=2)

    def store(self, value: Any, place: int, row: Any = None) -> None:
        """Write a row of an array."""
        self.builder.store(value, self._at(place, row, value.type), align=2)

    def store_one(self, value: Any, place: int, row: Any) -> None:
        """Write one number of an array, (m,)."""
        pointer = self.builder.gep(self._arrays[place].data, [row])  # type: ignore[union-attr]
        self.builder.store(value, self.builder.bitcast(pointer, value.type.as_pointer()), align=2)

    def _at(self, place: int, row: Any, kind: ir.VectorType | None) -> Any:
        pointer = self._arrays[place].data  # type: ignore[union-attr]
        if row is not None:
            pointer = self.builder.gep(pointer, [self.builder.mul(row, ir.Constant(ir.IntType(64), LANES))])
        return self.builder.bitcast(pointer, (kind or self.vector(place)).as_pointer())

    def spread(self, number: float, kind: ir.VectorType) -> Any:
        """Return a constant in every lane."""
        return ir.Constant(kind, [number] * LANES)

    def in_all_lanes(self, number: Any) -> Any:
        """Return a number in every lane."""
        zero = self.spread(0, ir.VectorType(number.type, LANES))
        one = self.builder.insert_element(zero, number, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(one, zero, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))

    def over_rows(self, count: Any, state: list[Any], step: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """Emit a loop over rows that carries registers along, and return them."""
        builder, several = self.builder, ir.Constant(ir.IntType(64), UNROLLED)
        held = [cgutils.alloca_once_value(builder, value) for value in state]
        for place, value in zip(held, state, strict=True):
            builder.store(value, place)

        def steps(first: Any, number: int) -> None:
            values = [builder.load(place) for place in held]
            for offset in range(number):
                values = step(builder.add(first, ir.Constant(ir.IntType(64), offset)), values)
            for place, value in zip(held, values, strict=True):
                builder.store(value, place)

        whole = builder.udiv(count, several)
        with cgutils.for_range(builder, whole) as loop:
            steps(builder.mul(loop.index, several), UNROLLED)
        done = builder.mul(whole, several)
        with cgutils.for_range(builder, builder.sub(count, done)) as loop:
            steps(builder.add(done, loop.index), 1)
        return [builder.load(place) for place in held]


@intrinsic
def fetch(typing_context, rows, row, column):  # pragma: no cover
    """Ask for the numbers around rows[row, column], which will be read soon."""

    def emit(context, builder, signature, args):
        array = context.make_array(rows)(context, builder, value=args[0])
        place = cgutils.get_item_pointer(context, builder, rows, array, args[1:], wraparound=False)
        address = builder.bitcast(place, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        callee = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(callee, [address, *(ir.Constant(number, value) for value in (READ, SECOND_CACHE, DATA))])
        return context.get_dummy_value()

    return types.void(rows, row, column), emit


@intrinsic
def upper_keys(typing_context, mixed, keys):  # pragma: no cover
    """Set keys to sixteen bits of each number, in the order of the numbers."""

    def emit(context, builder, signature, args):
        code = _Emitter(context, builder, signature, args)
        bits = mixed.dtype.bitwidth
        words = ir.VectorType(ir.IntType(bits), LANES)

        def step(row, _):
            word = code.load(0, row, words)
            # Numbers below zero are in the wrong order: all their bits are turned; of the others, only the sign.
            mask = builder.ashr(word, code.spread(bits - 1, words))
            turned = builder.xor(word, builder.or_(mask, code.spread(1 << (bits - 1), words)))
            code.store(builder.trunc(builder.lshr(turned, code.spread(bits - 16, words)), SHORTS), 1, row)
            return []

        code.over_rows(code.rows(0), [], step)
        return context.get_dummy_value()

    return types.void(mixed, keys), emit


@intrinsic
def bisect_keys(typing_context, keys, rank, found, below):  # pragma: no cover
    """Set found, per column, to the key of that rank, and below to how many keys are smaller."""

    def emit(context, builder, signature, args):
        code = _Emitter(context, builder, signature, args)
        ((best, under),) = _bisected(code, args[1:2])
        code.store(best, 2)
        code.store(under, 3)
        return context.get_dummy_value()

    return types.void(keys, rank, found, below), emit


@intrinsic
def bisect_both(typing_context, keys, low, high, first, below, last, under):  # pragma: no cover
    """Do what `bisect_keys` does for two ranks at once."""

    def emit(context, builder, signature, args):
        code = _Emitter(context, builder, signature, args)
        for place, (best, count) in zip((3, 5), _bisected(code, args[1:3]), strict=True):
            code.store(best, place)
            code.store(count, place + 1)
        return context.get_dummy_value()

    return types.void(keys, low, high, first, below, last, under), emit


def _bisected(code: _Emitter, ranks: list[Any]) -> list[tuple[Any, Any]]:
    """Emit what finds the key of each rank, per column, bit by bit, and how many keys are smaller."""
    builder, zero = code.builder, code.spread(0, SHORTS)
    wanted = [code.in_all_lanes(builder.trunc(rank, SHORT)) for rank in ranks]
    found = [(zero, zero) for _ in ranks]
    for bit in range(15, -1, -1):
        trials = [builder.or_(best, code.spread(1 << bit, SHORTS)) for best, _ in found]

        def step(row: Any, counts: list[Any], trials: list[Any] = trials) -> list[Any]:
            key = code.load(0, row)
            smaller = [builder.sext(builder.icmp_unsigned("<", key, trial), SHORTS) for trial in trials]
            return [builder.sub(count, more) for count, more in zip(counts, smaller, strict=True)]

        counts = code.over_rows(code.rows(0), [zero for _ in ranks], step)
        fits = [builder.icmp_unsigned("<=", count, rank) for count, rank in zip(counts, wanted, strict=True)]
        found = [
            (builder.select(fit, trial, best), builder.select(fit, count, under))
            for fit, trial, count, (best, under) in zip(fits, trials, counts, found, strict=True)
        ]
    return found


@intrinsic
def mark_keys(typing_context, keys, wanted, marks):  # pragma: no cover
    """Set marks, (m,), to one bit per column: whether its key in that row is the wanted one."""

    def emit(context, builder, signature, args):
        code = _Emitter(context, builder, signature, args)
        sought = code.load(1)

        def step(row, _):
            code.store_one(builder.bitcast(builder.icmp_unsigned("==", code.load(0, row), sought), MASK), 2, row)
            return []

        code.over_rows(code.rows(0), [], step)
        return context.get_dummy_value()

    return types.void(keys, wanted, marks), emit


@intrinsic
def first_bit(typing_context, mark):  # pragma: no cover
    """Return the place of the lowest bit that is set."""

    def emit(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return mark(mark), emit


@intrinsic
def least_above(typing_context, mixed, keys, first, found):  # pragma: no cover
    """Set found, per column, to the least of the numbers whose keys are above the first."""

    def emit(context, builder, signature, args):
        code = _Emitter(context, builder, signature, args)
        low, most = code.load(2), code.spread(float("inf"), code.vector(0))

        def step(row, state):
            number = builder.select(builder.icmp_unsigned(">", code.load(1, row), low), code.load(0, row), most)
            return [builder.select(builder.fcmp_ordered("<", number, state[0]), number, state[0])]

        (least,) = code.over_rows(code.rows(0), [most], step)
        code.store(least, 3)
        return context.get_dummy_value()

    return types.void(mixed, keys, first, found), emit


@intrinsic
def sum_between(typing_context, mixed, keys, first, last, sums):  # pragma: no cover
    """Set sums, per column, to the sum of the numbers whose keys are above the first and below the last."""

    def emit(context, builder, signature, args):
        code = _Emitter(context, builder, signature, args)
        low, high, nothing = code.load(2), code.load(3), code.spread(0.0, code.vector(0))

        def step(row, state):
            key = code.load(1, row)
            inside = builder.and_(builder.icmp_unsigned(">", key, low), builder.icmp_unsigned("<", key, high))
            number = builder.select(inside, code.load(0, row), nothing)
            wide = builder.fpext(number, DOUBLES) if mixed.dtype.bitwidth == 32 else number
            return [builder.fadd(state[0], wide)]

        (total,) = code.over_rows(code.rows(0), [code.spread(0.0, DOUBLES)], step)
        code.store(total, 4)
        return context.get_dummy_value()

    return types.void(mixed, keys, first, last, sums), emit


@intrinsic
def sum_nearer(typing_context, mixed, away, edge, sums, counts):  # pragma: no cover
    """Set sums, per column, to the sum of the numbers that are less far away than the edge, and counts to how many."""

    def emit(context, builder, signature, args):
        code = _Emitter(context, builder, signature, args)
        limit, nothing = code.load(2), code.spread(0.0, code.vector(0))

        def step(row, state):
            inside = builder.fcmp_ordered("<", code.load(1, row), limit)
            number = builder.select(inside, code.load(0, row), nothing)
            wide = builder.fpext(number, DOUBLES) if mixed.dtype.bitwidth == 32 else number
            return [builder.fadd(state[0], wide), builder.sub(state[1], builder.sext(inside, SHORTS))]

        total, count = code.over_rows(code.rows(0), [code.spread(0.0, DOUBLES), code.spread(0, SHORTS)], step)
        code.store(total, 3)
        code.store(count, 4)
        return context.get_dummy_value()

    return types.void(mixed, away, edge, sums, counts), emit


@intrinsic
def distances_from(typing_context, mixed, centre, away):  # pragma: no cover
    """Set away to how far each number is from its column's centre."""

    def emit(context, builder, signature, args):
        code = _Emitter(context, builder, signature, args)
        middle = code.load(1)

        def step(row, _):
            number = code.load(0, row)
            above, under = builder.fsub(number, middle), builder.fsub(middle, number)
            code.store(builder.select(builder.fcmp_ordered("<", above, under), under, above), 2, row)
            return []

        code.over_rows(code.rows(0), [], step)
        return context.get_dummy_value()

    return types.void(mixed, centre, away), emit
