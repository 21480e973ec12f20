"""Compares the checksums of pages in a compiled loop, without the interpreter lock, and takes their codes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
from isal import isal_zlib
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from semistream.core.arrays import Int32Array, Int64Array, UInt8Array, UInt32Array
from semistream.core.compile import kernel
from semistream.store.paged.format.page import gather_long, gather_short

_NAME = "semistream_crc32"
_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64)


def _slow_crc32(before: int, address: int, size_bytes: int) -> int:
    return isal_zlib.crc32((ctypes.c_ubyte * size_bytes).from_address(address), before)


slow_crc32 = _SIGNATURE(_slow_crc32)
"""Does what the library's own function does, but through Python; for builds of isal that hide theirs."""


def _function_address() -> int:
    """Return where the CRC-32 of isal is in memory; it gives the same numbers as zlib's, in a third of the time."""
    try:
        function = ctypes.CDLL(isal_zlib.__file__).crc32_gzip_refl
    except (AttributeError, OSError):
        return cast(int, ctypes.cast(slow_crc32, ctypes.c_void_p).value)
    return cast(int, ctypes.cast(function, ctypes.c_void_p).value)


def use_function(address: int) -> None:
    """Let kernels that are loaded from now on compute checksums by the function at this address."""
    llvm.add_symbol(_NAME, address)


use_function(_function_address())


@intrinsic
def _crc32(_: Any, source: Any, source_at: Any, count: Any) -> Any:  # noqa: ARG001
    signature = types.uint32(source, types.int64, types.int64)

    def generate(context: Any, builder: Any, signed: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        form = ir.FunctionType(word, [word, cgutils.voidptr_t, word])
        # By its name, so that a kernel from the cache on disk finds it again in another process.
        function = cgutils.get_or_insert_function(builder.module, form, _NAME)  # type: ignore[no-untyped-call]
        data = context.make_array(signed.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(data.data, [arguments[1]]), cgutils.voidptr_t)
        return builder.trunc(builder.call(function, [word(0), place, arguments[2]]), ir.IntType(32))

    return signature, generate


crc32: Callable[[UInt8Array, Any, Any], int] = cast(Any, _crc32)
"""The CRC-32 of some bytes: their array, the place of the first and their number; for kernels only."""


@kernel
def first_damaged(
    data: UInt8Array, starts: Int64Array, ends: Int64Array, pages: Int64Array, expected: UInt32Array
) -> tuple[Any, Any]:
    """Return the first of the pages in `data` whose checksum is not the one expected of its number, and what it is.

    (-1, 0) if all are as expected.
    """
    for place in range(starts.shape[0]):
        checksum = crc32(data, starts[place], ends[place] - starts[place])
        if checksum != expected[pages[place]]:
            return place, np.int64(checksum)
    return -1, np.int64(0)


TOO_SHORT = -2


@kernel
def checked_codes(
    data: UInt8Array,
    words: Int64Array,
    halves: Int32Array,
    starts: Int64Array,
    ends: Int64Array,
    pages: Int64Array,
    expected: UInt32Array,
    row_bounds: Int64Array,
    code_bytes: int,
    codes: Int64Array,
) -> tuple[Any, Any]:
    """Do what `first_damaged` does, and where no page is damaged write the values of their first column to `codes`.

    `words` and `halves` are the same memory as `data`. (TOO_SHORT, 0) if a page is too short for its rows. One call of
    both, because a thread that reads ahead must wait for the interpreter after each.
    """
    wrong, checksum = first_damaged(data, starts, ends, pages, expected)
    if wrong < 0:
        if code_bytes == 8:
            done = gather_long(words, starts, ends, row_bounds, codes)
        else:
            done = gather_short(words, halves, starts, ends, row_bounds, codes)
        if not done:
            return TOO_SHORT, np.int64(0)
    return wrong, checksum
