# ruff: noqa: E501 - a program reads best on one line
"""Programs that take over the conversation with their tester and answer as they like: none passes, none breaks the verifier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

TAKE_OVER = """
import json, os, struct
def read(count):
    data = b""
    while len(data) < count:
        part = os.read(3, count - len(data))
        if not part: os._exit(0)
        data += part
    return data
def recv(): return json.loads(read(*struct.unpack("!I", read(4))))
def send(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    data = struct.pack("!I", len(data)) + data
    while data: data = data[os.write(4, data):]
LOADED
while True:
    request = recv()
    if request[0] == "resolve": send(["resolved", [RESOLVED for _ in request[2]], []]); continue
    nothing = []
    tail = b"[]]"
    ANSWER
"""
HANDLE = "['value', ['h', 0, 'function', 'call hash', 'function', '']]"
ANSWERS = [
    "send(['returned', True, nothing])",
    "send(['returned', ['h', 1, 'int', 'call hash eq len', '', ''], nothing])",
    "send(['returned', ['h', 1, 'coroutine', 'await', '', ''], nothing])",
    "send(['returned', ['nt','int',['real'],16], nothing])",
    "send(['returned', ['nt','__import__(\"os\")._exit(0)',['x'],16], nothing])",
    "send(['returned', ['nt','A',['x=__import__(\"os\")._exit(0)'],16], nothing])",
    "send(['returned', ['nt','A',['x%d'%i for i in range(100000)]]+list(range(100000)), nothing])",
    "send(['returned', ['nt','A',['__eq__'],16], nothing])",
    "send(['returned', ['v','system','true'], nothing])",
    "send(['returned', ['v','UUID','x'], nothing])",
    "send(['returned', ['v','PurePosixPath',5], nothing])",
    "send(['returned', ['re','(',0], nothing])",
    "send(['returned', ['re','a',128], nothing])",
    "send(['returned', ['re','('*50000+')'*50000,0], nothing])",
    "send(['returned', ['st',1], nothing])",
    "send(['returned', ['dd',5,1,2], nothing])",
    "send(['returned', ['dd',['h',1,'E','call','',''],1,2], nothing])",
    "send(['returned', ['h',1,'E','len iter getitem contains add radd sub rsub','Sequence',''], nothing])",
    "send(['returned', ['h',1,'E','','type',''], nothing])",
    "send(['returned', ['cb', 0], nothing])",
    "send(['returned', ['cb', -1], nothing])",
    "send(['callback','call',0,[],[],[]])",
    "send(['callback','getattr',-1,['_session'],[],[]])",
    "send(['callback'])",
    "send(['returned', ['type','object'], nothing])",
    "send(['returned', ['type','Remote'], nothing])",
    "send(['returned', ['r', 0], nothing])",
    "send(['returned', ['r', -1], nothing])",
    "send(['returned', ['r', 'x'], nothing])",
    "send(['returned', 0, [[0,['l',1]]]])",
    "send(['returned', 0, [[-1,['l',1]]]])",
    "send(['returned',0,5])",
    "send(['returned', 0, [[1,['l',1],2]]])",
    "send(['returned', 0, [[1,5]]])",
    "send(['returned', 0, [[1,['zz']]]])",
    "send(['returned', 0, [[1,['t']]]])",
    "send(['returned', 0, [['1',['l']]]])",
    "send(['returned', 0, [[True,['l']]]])",
    "send(['returned', 0, [[[],['l']]]])",
    "send(['returned', 0, [[2,['l']]]])",
    "send(['returned', 0, [[0,['d',0,1]]]])",
    "send(['returned', 0, [[0,['l',9]],[0,['s',9]]]])",
    "send(['returned', 0, [[1,['l',['r',3]]]]])",
    "send(['returned', 0, [[1,['s',['r',1]]]]])",
    "send(['returned', 0, [[1,['d',['t',['r',1]],1]]]])",
    "send(['returned', 0, [[1,['d',['h',1,'E','hash eq','',''],1]]]])",
    "send(['returned', ['r',1], [[1,['l',['r',1]]]]])",
    "send(['returned', ['r',1], [[n,['l']] for n in range(1,600001,2)]])",
    "send(['returned', 0, {'a':1}])",
    "send(['returned', ['l',['r',0]], nothing])",
    "send(['returned', ['t',['r',0]], nothing])",
    "send(['returned', ['s',['l']], nothing])",
    "send(['returned', ['d',1], nothing])",
    "send(['returned', ['dec','1e999999999'], nothing])",
    "send(['returned', ['dec','sNaN'], nothing])",
    "send(['returned', ['fr',1,0], nothing])",
    "send(['returned', ['fr',['i','0x'+'f'*8000000],['i','0x'+'e'*8000001]], nothing])",
    "send(['returned', ['i','0x'+'f'*16000000], nothing])",
    "send(['returned',['i','__import__'], nothing])",
    "send(['returned', ['rg',0,['i','0x'+'f'*1000],1], nothing])",
    "send(['returned',['q',-5,1], nothing])",
    "send(['returned',['ar','Z',1], nothing])",
    "send(b'[\"returned\",'+b'9'*5000+b','+tail)",
    "send(b'[\"returned\",NaN,'+tail)",
    'send(b\'{"a":1,"a":2}\')',
    "send(b'[\"returned\",'+b'['*5000+b']'*5000+b','+tail)",
    "send(b'[\"returned\",'+b'[\"l\",'*9000+b'1'+b']'*9000+b','+tail)",
    "send(b'['*8000000)",
    "send(['raised',{}, nothing])",
    "send(['raised',{'type':'X','class':'AssertionError','bases':[],'message':''}, nothing])",
    "send(['raised',{'type':'X','class':['X',['StopIteration']],'bases':[],'message':''}, nothing])",
    "c='ValueError'\n    for i in range(3000): c=['X%d'%i,[c]]\n    send(['raised',{'type':'X','class':c,'bases':[],'message':''}, nothing])",
    "send(['raised',{'type':'X','class':['X',['Exception','ValueError']],'bases':[],'message':''}, nothing])",
    "send(['raised',{'type':'X','class':['X',['OSError','SyntaxError']],'bases':[],'message':''}, nothing])",
    "send(['raised',{'type':'X','class':['X',['AssertionError']],'bases':[],'message':'','args':['t'],'attributes':['d','candidate_error',0,'__class__',1]}, nothing])",
    "send(['raised',{'type':'X','class':['a\\0b',[]],'bases':[],'message':''}, nothing])",
    "send(['raised',{'type':'Skipped','class':['Skipped',['Exception']],'bases':[],'message':''}, nothing])",
    "send(['raised',{'type':'JobEndedError','class':['JobEndedError',['BaseException']],'bases':[],'message':''}, nothing])",
    "send(['raised',{'type':'MemoryError','class':'MemoryError','bases':['MemoryError'],'message':''}, nothing])",
    "send(['raised',{'type':'ModuleNotFoundError','class':'ModuleNotFoundError','bases':[],'message':\"No module named 'numpy'\"}, nothing])",
    "send(['raised',{'type':'RecursionError','class':'RecursionError','bases':[],'message':''}, nothing])",
    "send(['raised',{'type':'KeyboardInterrupt','class':'KeyboardInterrupt','bases':[],'message':''}, nothing])",
    "send([])",
    "send({})",
    "send(None)",
    "send('returned')",
    "send(['returned'])",
    "os.write(4,b'\\xff\\xff\\xff\\xff')",
    "os.write(4,b'\\0\\0\\0\\9abc'); os._exit(0)",
    "send(b'[\"returned\",[\"l\",'+b'[\"l\"],'*2500000+b'1],'+tail)",
    "send(b'[\"returned\",[\"d\",'+b','.join(b'%d,[\"d\"]'%i for i in range(800000))+b'],'+tail)",
]
"""How it answers calls."""
RESOLVED = [
    "['missing']",
    "['module','os']",
    "['module','subprocess']",
    "['module',5]",
    "['exception','X']",
    "['exception',['X',['SystemExit']]]",
    "['value',16]",
    "['value']",
    "['value',['cb',0]]",
    "[]",
    "5",
    "['value',['h','x','y']]",
    "['value',['h',0,'coroutine','','','']]",
]
"""What it says its names are."""
LOADED = [
    "send(['unloadable'])",
    "send(['unloadable', 'compile', {}])",
    "send(['unloadable', 'run', 5])",
    "send(['unloadable', 'x', {'type': 'A', 'class': 'A', 'bases': [], 'message': ''}])",
    "send([1])",
    "send([[]])",
    "os.write(4, b'\\xff' * 4)",
    "os._exit(0)",
]
"""What it says of its loading."""

NODE = "class Node:\n    def __init__(self, v): self.v = v\n\ndef solve(n):\n    return 0\n"
UNITTEST = "import unittest, solution\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(solution.solve(3), 16)\n    def test_b(self): self.assertEqual(solution.solve(4), 23)"
KINDS = {
    "calls": CallTests("solve", (CallCase((3,), 16), CallCase((4,), 23))),
    "check": CheckTests("solve", "def check(f):\n    assert f(Node(3)) == 16\n    assert f(4) == 23", NODE),
    "asserts": AssertTests(
        ("assert solve([3, 1]) == 16", "a = [1]; solve(a); assert a == [9]", "assert solve(lambda: 3) == 23")
    ),
    "functions": FunctionTests(UNITTEST),
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=0.5, wall_s=6, memory_mib=300, output_mib=2)
    yield verifier
    verifier.close()


def take_over(
    loaded: str = "send(['loaded'])", resolved: str = HANDLE, answer: str = "send(['returned', 16, nothing])"
) -> str:
    return TAKE_OVER.replace("LOADED", loaded).replace("RESOLVED", resolved).replace("ANSWER", answer)


PROGRAMS = [
    *(take_over(answer=answer) for answer in ANSWERS),
    *(take_over(resolved=resolved) for resolved in RESOLVED),
    *(take_over(loaded=loaded) for loaded in LOADED),
]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_forged_conversation_fails(number: int, verifier: UnitTestVerifier) -> None:
    """Each under two kinds of tests, in turn."""
    for kind in (list(KINDS)[number % 4], list(KINDS)[(number + 1) % 4]):
        verdict = verifier(PROGRAMS[number], Problem("p", "", KINDS[kind]))
        assert verdict.score == 0, (kind, PROGRAMS[number], verdict.detail)


def test_the_same_conversation_with_right_answers_passes(verifier: UnitTestVerifier) -> None:
    """So it is the answers above that fail, and not the way they are given."""
    answer = "n = request[2][0]; send(['returned', n * n + 7 if type(n) is int else None, nothing])"
    assert verifier(take_over(answer=answer), Problem("p", "", KINDS["calls"])).outcome is Outcome.CORRECT
    assert verifier(take_over(answer=answer), Problem("p", "", KINDS["functions"])).outcome is Outcome.CORRECT
