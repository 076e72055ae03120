"""Which test code can't tell whether a container that crosses is shared or copied.

To tell, a test has to look at a container after a second request, or to change one. Code that stores nothing, calls one
function of the program in a statement, and applies nothing but operators and builtins to what comes of it does neither.
As in `harmless`, the compiled code is asked, and what is not known means "no".
"""

from __future__ import annotations

import array
import builtins
import collections
import dis
import types

_STATEMENTS = """
CACHE RESUME NOP EXTENDED_ARG PUSH_NULL POP_TOP COPY SWAP LOAD_CONST RETURN_VALUE RETURN_CONST
LOAD_NAME LOAD_GLOBAL LOAD_FAST LOAD_METHOD LOAD_ATTR PRECALL CALL KW_NAMES
COMPARE_OP CONTAINS_OP IS_OP UNARY_POSITIVE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT BINARY_OP BINARY_SUBSCR BINARY_SLICE
BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP BUILD_STRING BUILD_SLICE LIST_EXTEND SET_UPDATE DICT_UPDATE
POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_FORWARD_IF_NONE
POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE LOAD_ASSERTION_ERROR RAISE_VARARGS TO_BOOL CALL_KW
"""
_DEFINITIONS = """
CACHE RESUME NOP EXTENDED_ARG LOAD_CONST LOAD_NAME STORE_NAME MAKE_FUNCTION RETURN_VALUE RETURN_CONST
BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP LIST_EXTEND SET_UPDATE DICT_UPDATE SET_FUNCTION_ATTRIBUTE
"""


def _numbers(names: str) -> frozenset[int]:
    return frozenset(dis.opmap[name] for name in names.split() if name in dis.opmap)


_IN_STATEMENTS, _IN_DEFINITIONS = _numbers(_STATEMENTS), _numbers(_DEFINITIONS)
_ENDS = _numbers("POP_TOP RAISE_VARARGS")
_LOADS = _numbers("LOAD_NAME LOAD_GLOBAL LOAD_FAST")
_LOAD_FAST, _LOAD_GLOBAL = dis.opmap["LOAD_FAST"], dis.opmap["LOAD_GLOBAL"]
_REACHING = {"getattr", "setattr", "delattr", "eval", "exec", "compile", "globals", "locals", "vars", "next"}
_OTHERS = {name for name in dir(builtins) if not name.startswith("_")} - _REACHING | {"math"}
"""Names that are not the program's, and what they stand for changes no container."""
_METHODS = frozenset(
    name
    for kind in (
        list,
        dict,
        set,
        bytearray,
        array.array,
        collections.deque,
        collections.OrderedDict,
        collections.Counter,
    )
    for name in dir(kind)
)


def keeps_nothing(code: types.CodeType) -> bool:
    """Whether test code, statements or the definition of one function of statements, can't tell a container from a copy."""
    functions = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    if not functions:
        return _only_looks(code)
    return len(functions) == 1 and _IN_DEFINITIONS.issuperset(code.co_code[::2]) and _only_looks(functions[0])


def _only_looks(code: types.CodeType) -> bool:
    if not _IN_STATEMENTS.issuperset(code.co_code[::2]) or any(
        isinstance(each, types.CodeType) for each in code.co_consts
    ):
        return False
    if any(name in _METHODS or name in _REACHING or name.startswith("_") for name in code.co_names):
        return False
    loads = extension = 0
    for instruction, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        number, extension = argument | extension << 8, 0
        if instruction == dis.EXTENDED_ARG:
            extension = number
        elif instruction in _ENDS:
            loads = 0
        elif instruction in _LOADS and not _loads_other(code, instruction, number):
            loads += 1
            if loads > 1:
                return False
    return True


def _loads_other(code: types.CodeType, instruction: int, number: int) -> bool:
    if instruction == _LOAD_FAST:
        return False  # the function that is tested
    return code.co_names[number >> 1 if instruction == _LOAD_GLOBAL else number] in _OTHERS
