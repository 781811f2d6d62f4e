"""How is a kernel compiled?

One decorator for all: compiled on first use and cached on disk (see `cache`), without fast math,
because a run must replay bit for bit. With `NUMBA_DISABLE_JIT=1` in the environment kernels
are plain Python: slow, but every line can be stepped through and tested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from driftline.kernels.cache import Locator

_P = ParamSpec("_P")
_R = TypeVar("_R")

COMPILED = not numba.config.DISABLE_JIT
_LOCATOR = f"{Locator.__module__}.{Locator.__qualname__}"


def jit(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a kernel. Arrays and scalars in, scalars out; the wrapper validates, it trusts.

    Without Numba's reference counting, which would touch a counter per array and call.
    """
    return _compiled(function, _nrt=False)


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a part of a hot loop into its callers: passing an array costs seven arguments."""
    return _compiled(function, _nrt=False, forceinline=True)


def allocating(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a kernel that makes arrays or hands them on."""
    return _compiled(function)


def _compiled(function: Callable[_P, _R], **options: bool) -> Callable[_P, _R]:
    if COMPILED:
        before = numba.config.CACHE_LOCATOR_CLASSES
        numba.config.CACHE_LOCATOR_CLASSES = _LOCATOR
        try:
            compiled: Callable[_P, _R] = numba.njit(
                cache=True, error_model="numpy", nogil=True, **options
            )(function)
        finally:
            numba.config.CACHE_LOCATOR_CLASSES = before
        return compiled

    @functools.wraps(function)
    def plain(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # 64-bit integers wrap around in kernels, as machine integers do.
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    return plain


if COMPILED:

    @intrinsic
    def _cttz(typingctx: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.int64), codegen

    @intrinsic
    def _ctlz(typingctx: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

        return types.int64(types.int64), codegen

    @intrinsic
    def _ctpop(typingctx: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ctpop(args[0])

        return types.int64(types.int64), codegen

    @intrinsic
    def _prefetch(typingctx: Any, words: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = builder.gep(
                make_array(signature.args[0])(context, builder, args[0]).data, args[1:]
            )
            byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
            prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            # To be read, to be kept in all caches, data.
            builder.call(prefetch, [builder.bitcast(word, byte), flag(0), flag(3), flag(1)])
            return context.get_dummy_value()

        return types.void(words, types.int64), codegen

    @intrinsic
    def _copy(typingctx: Any, to: Any, at: Any, raw: Any, start: Any, count: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def address(array: int, place: int) -> Any:
                data = make_array(signature.args[array])(context, builder, args[array]).data
                return builder.gep(data, [args[place]])

            cgutils.raw_memcpy(builder, address(0, 1), address(2, 3), args[4], 1)
            return context.get_dummy_value()

        word = types.int64
        return types.void(to, word, raw, word, word), codegen

    @inlined
    def copy_bytes(
        to: NDArray[np.uint8], at: int, raw: NDArray[np.uint8], start: int, count: int
    ) -> None:
        """Copy some bytes of one array into another."""
        _copy(to, at, raw, start, count)

    @inlined
    def prefetch(words: NDArray[np.int64], at: int) -> None:
        """Let a word be fetched while something else is done."""
        _prefetch(words, at)

    @jit
    def trailing_zeros(word: int) -> int:
        """The number of the lowest bit that is set; 64 if none is."""
        return _cttz(word)  # type: ignore[no-any-return]

    @jit
    def bit_length(word: int) -> int:
        """How many bits a word has up to the highest that is set."""
        return 64 - _ctlz(word)  # type: ignore[no-any-return]

    @jit
    def bit_count(word: int) -> int:
        """How many bits are set."""
        return _ctpop(word)  # type: ignore[no-any-return]

else:
    _MASK = (1 << 64) - 1

    def copy_bytes(
        to: NDArray[np.uint8], at: int, raw: NDArray[np.uint8], start: int, count: int
    ) -> None:
        """Copy some bytes of one array into another."""
        to[at : at + count] = raw[start : start + count]

    def prefetch(words: NDArray[np.int64], at: int) -> None:
        """Let a word be fetched while something else is done."""

    def trailing_zeros(word: int) -> int:
        """The number of the lowest bit that is set; 64 if none is."""
        word = int(word) & _MASK
        return (word & -word).bit_length() - 1 if word else 64

    def bit_length(word: int) -> int:
        """How many bits a word has up to the highest that is set."""
        return (int(word) & _MASK).bit_length()

    def bit_count(word: int) -> int:
        """How many bits are set."""
        return (int(word) & _MASK).bit_count()
