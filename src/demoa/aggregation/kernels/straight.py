"""Sorting networks as straight-line code: made for one number of rows, with no loop and no branch.

A loop over steps writes both wires back to the cache after every step. Straight-line code keeps them in
registers where it can, which makes a sort two to three times faster. numba compiles it when it is first
asked for (a quarter of a second for 25 rows, one for 100) and keeps it on disk, like all its kernels.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from demoa.aggregation.kernels.network import full_network, rank_network

REGISTER_BYTES = 32
"""Columns that are sorted together fill so much: one AVX register, or two of older machines."""


@intrinsic
def sort_columns(typing_context, rows, chosen, scale, left, out, at, low, high, full, wires):  # pragma: no cover
    """Set out[:, at:], (wires, c), to the sorted columns rows[chosen, left:] * scale, one register of them.

    The last four are constants of the compiler, so that they are part of the function's type. Wires low..high of
    `out` get the values of those ranks, in any order, and the others nothing; if full, all wires are sorted.
    """
    del typing_context
    constants = (low, high, full, wires)
    if not all(isinstance(kind, types.Literal) for kind in constants):
        return None
    first, last, whole, count = (kind.literal_value for kind in constants)
    steps = full_network(count) if whole else rank_network(count, first, last)
    wanted = range(count) if whole else range(first, last + 1)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> Any:
        del signature
        number = context.get_value_type(rows.dtype)
        size = context.get_abi_sizeof(number)
        register = ir.VectorType(number, REGISTER_BYTES // size)

        def array(place: int, kind: types.Array) -> Any:
            return context.make_array(kind)(context, builder, value=args[place])

        def columns(table: Any, row: Any, column: Any) -> Any:
            width = builder.extract_value(table.shape, 1)
            entry = builder.gep(table.data, [builder.add(builder.mul(row, width), column)])
            return builder.bitcast(entry, register.as_pointer())

        def entry(vector: Any, wire: int) -> Any:
            return builder.load(builder.gep(vector.data, [ir.Constant(ir.IntType(64), wire)]))

        def spread(value: Any) -> Any:
            undefined = ir.Constant(register, ir.Undefined)
            whole_number = ir.IntType(32)
            one = builder.insert_element(undefined, value, ir.Constant(whole_number, 0))
            zeros = ir.Constant(ir.VectorType(whole_number, register.count), None)
            return builder.shuffle_vector(one, undefined, zeros)

        source, index, factor, target = array(0, rows), array(1, chosen), array(2, scale), array(4, out)
        values = []
        for wire in range(count):
            loaded = builder.load(columns(source, entry(index, wire), args[3]), align=size)
            values.append(builder.fmul(loaded, spread(entry(factor, wire))))
        for i, j in steps.tolist():
            a, b = values[i], values[j]
            # Written so, each is one instruction; where there is no NaN it is the smaller and the larger.
            values[i] = builder.select(builder.fcmp_ordered("<", a, b), a, b)
            values[j] = builder.select(builder.fcmp_ordered(">", a, b), a, b)
        for wire in wanted:
            place = columns(target, ir.Constant(ir.IntType(64), wire), args[5])
            builder.store(values[wire], place, align=size)
        return context.get_dummy_value()

    return types.void(rows, chosen, scale, left, out, at, *constants), emit
