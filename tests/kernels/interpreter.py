"""Repairs Triton's interpreter where it computes with bfloat16: importing this module is enough.

The interpreter keeps a bfloat16 as the 16 bits of it in a uint16. Loads, stores and bit casts are right then, but arithmetic
and dots work on the bits as if they were integers and say nothing, a conversion from or to anything but float32 copies
integers, and one from float32 cuts instead of rounding to nearest even as the hardware does. Here every such operation
widens its bfloat16 operands to float32, computes, and rounds once. ``test_interpreter.py`` fails without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

Handle = interpreter.TensorHandle
Builder = interpreter.InterpreterBuilder

BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)


def widened(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bit patterns."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(values: np.ndarray) -> np.ndarray:
    """The bfloat16 bit patterns nearest to values, ties to even; a NaN stays one."""
    single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32).astype(np.uint64)
    nearest = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(single), np.uint16(0x7FC0), nearest).astype(np.uint16)


def is_bfloat16(dtype: Any) -> bool:
    return not isinstance(dtype, tl.pointer_type) and dtype.scalar == tl.bfloat16


def as_float32(handle: Any) -> Any:
    return Handle(widened(handle.data), tl.float32) if is_bfloat16(handle.dtype) else handle


def of_result(values: np.ndarray) -> Any:
    """What an operation on bfloat16 returns: comparisons stay what they are."""
    if values.dtype == np.bool_:
        return Handle(values, tl.int1)
    return Handle(rounded(values), tl.bfloat16)


def repair() -> None:
    """Put the repaired operations in place of the interpreter's, once."""
    if getattr(Builder, "bfloat16_repaired", False):
        return
    binary, unary, dot = Builder.binary_op, Builder.unary_op, Builder.create_dot
    cast, fp_to_fp = Builder.cast_impl, Builder.create_fp_to_fp

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Callable[..., np.ndarray]) -> Any:
        if not is_bfloat16(lhs.dtype) or op in BITWISE:
            return binary(self, lhs, rhs, op)
        return of_result(op(widened(lhs.data), widened(rhs.data)))

    def unary_op(self: Any, arg: Any, op: Callable[..., np.ndarray]) -> Any:
        return of_result(op(widened(arg.data))) if is_bfloat16(arg.dtype) else unary(self, arg, op)

    def create_dot(self: Any, a: Any, b: Any, d: Any, *how: Any) -> Any:
        return dot(self, as_float32(a), as_float32(b), d, *how)

    def convert(self: Any, src: Any, dst_type: Any, otherwise: Callable[..., Any], *how: Any) -> Any:
        if is_bfloat16(dst_type):
            source = as_float32(src)
            return Handle(rounded(source.data.astype(np.float32)), tl.bfloat16)
        if is_bfloat16(src.dtype):
            return cast(self, as_float32(src), dst_type)
        return otherwise(self, src, dst_type, *how)

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        return convert(self, src, dst_type, cast)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding: Any) -> Any:
        return convert(self, src, dst_type, fp_to_fp, rounding)

    Builder.binary_op, Builder.unary_op, Builder.create_dot = binary_op, unary_op, create_dot
    Builder.cast_impl, Builder.create_fp_to_fp = cast_impl, create_fp_to_fp
    Builder.bfloat16_repaired = True


repair()
