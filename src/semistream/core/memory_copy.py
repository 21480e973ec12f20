"""A copy of bytes that compiled kernels can call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba.core import cgutils, types
from numba.extending import intrinsic

from semistream.core.arrays import UInt8Array


@intrinsic
def _copy_bytes(_: Any, target: Any, target_at: Any, source: Any, source_at: Any, count: Any) -> Any:  # noqa: ARG001
    signature = types.void(target, types.int64, source, types.int64, types.int64)

    def generate(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
        to = context.make_array(signed.args[0])(context, builder, arguments[0])
        origin = context.make_array(signed.args[2])(context, builder, arguments[2])
        cgutils.raw_memcpy(  # type: ignore[no-untyped-call]
            builder, builder.gep(to.data, [arguments[1]]), builder.gep(origin.data, [arguments[3]]), arguments[4], 1
        )
        return context.get_dummy_value()

    return signature, generate


copy_bytes: Callable[[UInt8Array, Any, UInt8Array, Any, Any], None] = cast(Any, _copy_bytes)
"""Copies bytes between two arrays: target, place in it, source, place in it, count; for kernels only.

A loop over bytes is not turned into a block copy by the compiler, because the arrays might overlap, and is several
times slower.
"""
