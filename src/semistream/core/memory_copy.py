"""A copy of bytes that compiled kernels can call."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def copy_bytes(_: Any, target: Any, target_at: Any, source: Any, source_at: Any, count: Any) -> Any:
    """Copy `count` bytes between two arrays of bytes, from and to the places given; for kernels only.

    A loop over bytes is not turned into a block copy by the compiler, because the arrays might overlap, and is several
    times slower.
    """
    signature = types.void(target, types.int64, source, types.int64, types.int64)

    def generate(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
        to = context.make_array(signed.args[0])(context, builder, arguments[0])
        origin = context.make_array(signed.args[2])(context, builder, arguments[2])
        cgutils.raw_memcpy(
            builder, builder.gep(to.data, [arguments[1]]), builder.gep(origin.data, [arguments[3]]), arguments[4], 1
        )
        return context.get_dummy_value()

    return signature, generate
