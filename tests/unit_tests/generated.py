"""Programs, test files that log what they see of them, and the logs of runs in one process: for the property test."""

from __future__ import annotations

import textwrap
from random import Random
from typing import Any

PREFIX = """
class Node:
    def __init__(self, val=0, next=None): self.val, self.next = val, next
    def __repr__(self): return f"Node({self.val})"
"""
_HEAD = """
import copy, itertools
KEPT = []
class Full(ValueError):
    def __init__(self, size):
        super().__init__(f"full at {size}")
        self.size = size
def caught(g, x):
    try: return g(x)
    except ValueError as error: return str(error)
"""
_BOX = """
class Box:
    def __init__(self, xs): self.xs = xs
    def __repr__(self): return f'Box{self.xs!r}'
"""
_METHODS = """
def put(self, n): self.xs.append(n); return self
def put(self, n): self.xs = [*self.xs, n]
def get(self): return self.xs
def get(self): return list(self.xs)
def get(self): return self
def __len__(self): return len(self.xs)
def __iter__(self): return iter(self.xs)
def __iter__(self): yield from self.xs
def __getitem__(self, i): return self.xs[i]
def __setitem__(self, i, x): self.xs[i] = x
def __eq__(self, other): return isinstance(other, Box) and self.xs == other.xs
def __bool__(self): return bool(self.xs)
def __lt__(self, other): return len(self.xs) < len(other.xs)
def __add__(self, other): return Box(self.xs + other.xs)
def __contains__(self, x): return x in self.xs
def __call__(self, x): return [x, self.xs]
def __enter__(self): return self.xs
def __exit__(self, *error): self.xs.append(error[0] and str(error[1]))
def __exit__(self, *error): return True
def __hash__(self): return 5
first = property(lambda self: self.xs[0])
first = 3
first = staticmethod(lambda: KEPT)
def each(self, g): return [g(x) for x in itertools.islice(self.xs, 5)]
"""
_BODIES = {
    "list": """
xs.append(n)
xs.insert(0, n)
xs.reverse()
xs.clear()
xs[:] = xs[::-1]
xs *= 2
del xs[0]
xs[0] = [n]
xs.append(xs)
KEPT.append(xs)
KEPT[:] = xs
if KEPT: KEPT[-1].append(n)
if len(xs) > 3: raise Full(len(xs))
xs = [xs, n]
if g: xs.sort(key=g)
if g: xs[:] = map(g, itertools.islice(xs, 5))
return xs
return [xs, xs]
return list(xs)
return sorted(xs, key=repr)
return (x for x in xs)
return iter(xs)
return Box(xs)
return {n: xs}
return lambda y: [xs, y]
return [g(x) for x in itertools.islice(xs, 5)] if g else copy.copy(xs)
""",
    "dict": """
xs[n] = [n]
xs.setdefault(n, []).append(n)
xs.pop(n, None)
xs.update({n: xs})
KEPT.append(xs)
if g: xs[n] = g(n)
for x in list(xs): xs[x] = n
xs[5].append(n)
return xs
return list(xs.values())
return list(xs.items())
return xs[n]
return dict(xs)
return Box(list(xs))
""",
    "set": """
xs.add(n)
xs.discard(n)
xs |= {n, 4}
KEPT.append(xs)
if n in xs: raise KeyError(n)
return xs
return sorted(xs)
return frozenset(xs)
return xs & {1, n}
""",
    "any": """
KEPT.append(xs)
yield xs
yield n
if g: g(xs)
if g: n = g(n)
if n > 2: raise KeyError(n)
KEPT.append(caught(g, xs))
return xs
return KEPT
return (n, xs)
return Full(n)
return KEPT[-1]
return xs == [n]
return g
return None
""",
    "node": """
xs.val += n
xs.next = Node(n, xs.next)
xs.next = xs
KEPT.append(xs)
xs.own = [n]
if KEPT: KEPT[-1].val = n
return xs
return xs.next
return Node(n, xs)
return [xs, xs.next]
return KEPT[-1]
return copy.deepcopy(xs)
""",
}
_VALUES = {
    "list": ("[1, 2]", "[3, 1, 2]", "[]", "[[1], [2]]", "[0, [5]]"),
    "dict": ("{1: [2]}", "{}", "{5: [], 'a': 1}"),
    "set": ("{1, 2}", "set()"),
    "any": ("'ab'", "(1, [2])", "2", "f", "Box", "None", "frozenset({1})"),
    "node": ("Node(1, Node(2))", "Node(3)"),
    "box": ("Box([1, 2])", "Box(a)", "Box(b)"),
}
_CALLS = {"list": "f", "dict": "d", "set": "s", "node": "h", "any": "g"}
_FUNCTIONS = (
    *(
        "lambda x: x",
        "lambda x: -x",
        "lambda x: a.append(x)",
        "lambda x: [x, a]",
        "lambda x: f(x, 1)",
        "a.append",
        "str",
    ),
    *("fail", "lambda x: log.append(show(x))", "lambda x: b", "f", "Box", "len", "c.put", "lambda x: c"),
)
_STEPS = {
    "list": """
{a}.append({n})
{a}[0] = {b}
{a}.append({b})
{a}.clear()
del {a}[0]
{a} = {b} + [{n}]
{a} = {a}[0]
for x in itertools.islice({a}, 3): g({a}, x)
for x in itertools.islice({a}, 2): {a}.append(x)
for x in itertools.islice({a}, 5): f({b}, x)
show(list({a}))
{a} == [1, 2]
len({a})
sorted({a}, key=repr)
""",
    "dict": """
{a}[{n}] = {b}
{a} = {a}[1]
{a}[1].append({n})
list({a}.items())
for x in itertools.islice({a}, 5): d({b}, x)
""",
    "set": "\n{a}.add({n})\n{n} in {a}\n{a} - {{1}}\n",
    "node": """
{a}.val
{a}.val = {b}
same({a}.next, {b})
{a}.next = {b}
{a} = {a}.next
sorted(vars({a})) if isinstance({a}, Node) else None
""",
    "box": """
{a}.put({n})
{a} = {a}.get()
{a}.xs
same({a}.xs, {b})
{a}.xs = {b}
{a}.n = {b}
len({a})
list({a})
{a}[0]
{a}[0] = {n}
{a} == {b}
{a} < {b}
{a} + {a}
{n} in {a}
{b} in {a}
{a}({n})
with {a} as x: x.append({n})
with {a}: raise KeyError({n})
{a}.first
{a}.each({function})
hasattr({a}, 'put')
isinstance({a}, Box)
for x in {a}: log.append(len(log) < 9 and show({a}.put(9)))
copy.deepcopy({a})
same(copy.copy({a}).xs, {a}.xs)
""",
    "any": """
{a}
same({a}, {b})
same({a}, {a})
{a} == {b}
{a} != {b}
bool({a})
next({a}, 5)
{a} = iter({b})
list(itertools.islice({a}, 4))
type({a}).__name__
callable({a})
{a} in [{b}, {n}]
{a} is None
{a}.size, {a}.args, str({a})
{a}({b})
{a} = {b}
{a} = [{a}, {b}]
raise {a}
""",
}

_TRY = "try:\n    {}\nexcept Exception as error: log.append(type(error).__name__)\n"

_START = """
log = []
def fail(x): raise ValueError(x)
def show(x): return re.sub("<function .*? at|0x[0-9a-f.]+", "", repr(x))
def same(x, y): return x is y if isinstance(x, (list, dict, set, Box, Node)) else None
a = b = []
"""


def _lines(table: str) -> list[str]:
    return table.strip().splitlines()


def _function(random: Random, name: str, kind: str) -> str:
    lines = [*_lines(_BODIES[kind]), *_lines(_BODIES["any"])]
    returns = [line for line in lines if line.startswith("return")]
    others = [line for line in lines if not line.startswith("return")]
    body = [*random.sample(others, random.randrange(3)), random.choice(returns)]
    return f"def {name}(xs, n=1, g=None):\n" + textwrap.indent("\n".join(body), "    ") + "\n"


def make_program(random: Random) -> str:
    """A class, and a function for each kind of argument."""
    methods = random.sample(_lines(_METHODS), random.randrange(2, 10))
    box = _BOX + "".join(f"    {method}\n" for method in methods)
    return _HEAD + box + "".join(_function(random, name, kind) for kind, name in _CALLS.items())


def _step(random: Random, kinds: dict[str, str]) -> str:
    a, b = random.choice("abc"), random.choice("abc")
    kind, n, function = kinds[a], random.randrange(4), random.choice(_FUNCTIONS)
    if random.random() < 0.4:
        name = _CALLS.get(kind, "g") if random.random() < 0.8 else "g"
        call = f"{name}({a}, {n})" if random.random() < 0.6 else f"{name}({a}, {n}, {function})"
        line = random.choice(("log.append(show(CALL))", "{b} = CALL", "CALL")).replace("CALL", call).format(b=b)
        kinds[b] = "any" if line.startswith(f"{b} =") and random.random() < 0.5 else kinds[b]
    else:
        line = random.choice(_lines(_STEPS[kind]) + _lines(_STEPS["any"])).format(a=a, b=b, n=n, function=function)
        if line.startswith(f"{a} = "):
            kinds[a] = kinds[b] if line == f"{a} = {b}" else "any"
        elif not line.startswith(("for", "with", "del", "raise")) and " = " not in line:
            line = f"log.append(show({line}))"
    return _TRY.format(line)


def make_body(random: Random) -> str:
    """The body of a test, up to the comparison of its log."""
    kinds = {name: random.choice([*_VALUES]) for name in "abc"}
    values = "".join(f"{name} = {random.choice(_VALUES[kind])}\n" for name, kind in kinds.items())
    steps = "".join(_step(random, kinds) for _ in range(random.randrange(4, 14)))
    return _START + values + steps + _TRY.format("log.append(show([a, b, c]))")


_IMPORTS = f"import copy, itertools, re\nfrom solution import Box, Full, {', '.join(_CALLS.values())}\n"


def make_test_file(body: str, log: list[Any]) -> str:
    """The test file for a body and what it should log."""
    return f"{_IMPORTS}def test_it():\n{textwrap.indent(body, '    ')}    assert log == {log!r}, log\n"


def log_in_one_process(program: str, body: str) -> list[Any]:
    """What the test logs where it shares a process with the program."""
    namespace: dict[str, Any] = {"__name__": "solution"}
    test = f"import re\ndef test_it():\n{textwrap.indent(body, '    ')}    return log\n"
    exec(PREFIX + program + test, namespace)
    log: list[Any] = namespace["test_it"]()
    return log
