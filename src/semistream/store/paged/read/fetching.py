"""Reads many stretches of files by one call of a compiled loop, without the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array
from semistream.core.compile import kernel
from semistream.store.paged.versions.page_index import address

FILE_STRIDE = int(address(1, 0))  # from an address in one file to the same place in the next


@intrinsic
def _pread(_: Any, descriptor: Any, target: Any, target_at: Any, count: Any, offset: Any) -> Any:  # noqa: ARG001
    signature = types.int64(types.int32, target, types.int64, types.int64, types.int64)

    def generate(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        form = ir.FunctionType(word, [ir.IntType(32), cgutils.voidptr_t, word, word])
        # By its name, so that a kernel from the cache on disk finds it again in another process.
        function = cgutils.get_or_insert_function(builder.module, form, "pread")  # type: ignore[no-untyped-call]
        to = context.make_array(signed.args[1])(context, builder, arguments[1])
        place = builder.bitcast(builder.gep(to.data, [arguments[2]]), cgutils.voidptr_t)
        return builder.call(function, [arguments[0], place, arguments[3], arguments[4]])

    return signature, generate


pread: Callable[[Any, UInt8Array, Any, Any, Any], int] = cast(Any, _pread)
"""The system call: descriptor, target, place in it, count, offset in the file; for kernels only."""


@intrinsic
def _fadvise(_: Any, descriptor: Any, offset: Any, count: Any, advice: Any) -> Any:  # noqa: ARG001
    signature = types.int32(types.int32, types.int64, types.int64, types.int32)

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        word, number = ir.IntType(64), ir.IntType(32)
        form = ir.FunctionType(number, [number, word, word, number])
        function = cgutils.get_or_insert_function(builder.module, form, "posix_fadvise")  # type: ignore[no-untyped-call]
        return builder.call(function, arguments)

    return signature, generate


fadvise: Callable[[Any, Any, Any, Any], int] = cast(Any, _fadvise)
"""The system call `posix_fadvise`: descriptor, offset, count, advice; for kernels only."""
_WILL_NEED = np.int32(os.POSIX_FADV_WILLNEED)


@kernel
def announce_extents(descriptors: Int32Array, extents: Int64Array, first: int, last: int) -> None:
    """Let the system begin to read the extents from first to before last, many of them at a time."""
    for number in range(first, last):
        start, length, _ = extents[number]
        fadvise(descriptors[start // FILE_STRIDE], start % FILE_STRIDE, length, _WILL_NEED)


@kernel
def read_extents(descriptors: Int32Array, extents: Int64Array, first: int, last: int, target: UInt8Array) -> int:
    """Read the extents from first to before last into their places, and return the first that is not complete.

    An extent is not complete if the file ends inside it, on any error, and when a signal came in between.
    """
    for number in range(first, last):
        start, length, position = extents[number]
        descriptor = descriptors[start // FILE_STRIDE]
        offset = start % FILE_STRIDE
        done = 0
        while done < length:
            count = pread(descriptor, target, position + done, length - done, offset + done)
            if count <= 0:
                return number
            done += count
    return last
