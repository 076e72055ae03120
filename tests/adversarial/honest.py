# ruff: noqa: E501 - a program reads best on one line
"""Honest programs that use what a sandbox could take away; they run between the hostile ones and must pass.

Each function returns, and each script prints, n * n + 7.
"""

FUNCTIONS = {
    "lam": "solve=lambda n: n*n+7",
    "byte order mark": "\ufeffdef solve(n): return n*n+7",
    "cls": "class C:\n    def __call__(s,n): return n*n+7\nsolve=C()",
    "partial": "import functools\nsolve=functools.partial(lambda a,n: n*n+a,7)",
    "lru": "import functools\n@functools.lru_cache(None)\ndef solve(n): return n*n+7",
    "threads": "from concurrent.futures import ThreadPoolExecutor as T\ndef solve(n):\n    with T(8) as e: return sum(e.map(lambda i: n, range(n)))+7",
    "asyncio": "import asyncio\nasync def f(n):\n    await asyncio.sleep(0.001)\n    return n*n+7\ndef solve(n): return asyncio.run(f(n))",
    "bigrec": "import sys\nsys.setrecursionlimit(10**6)\ndef f(k): return 0 if k==0 else 1+f(k-1)\ndef solve(n): return n*n+7+f(20000)-20000",
    "lrurec": "import sys, functools\nsys.setrecursionlimit(10**6)\n@functools.lru_cache(None)\ndef f(k): return 0 if k==0 else 1+f(k-1)\ndef solve(n): return n*n+7+f(5000)-5000",
    "threadstack": """import sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(2**27)
def solve(n):
    r=[]
    def m():
        def f(k): return 0 if k==0 else 1+f(k-1)
        r.append(n*n+7+f(50000)-50000)
    t=threading.Thread(target=m); t.start(); t.join()
    return r[0]""",
    "devnull": "import os, contextlib\ndef solve(n):\n    with open(os.devnull,'w') as f, contextlib.redirect_stdout(f): print('x'*100)\n    return n*n+7",
    "devnull2": "import sys, os\nsys.stdout=open('/dev/null','w')\ndef solve(n):\n    print(n)\n    return n*n+7",
    "print": "def solve(n):\n    print('debug', n)\n    return n*n+7",
    "stderr": "import sys, logging, warnings\ndef solve(n):\n    logging.warning('x'); warnings.warn('y'); print('e', file=sys.stderr)\n    return n*n+7",
    "main": "def solve(n): return n*n+7\nif __name__ == '__main__':\n    print(solve(int(input())))",
    "doctest": "def solve(n):\n    '''\n    >>> solve(3)\n    16\n    '''\n    return n*n+7\nimport doctest\ndoctest.testmod()",
    "dataclass": "from dataclasses import dataclass\n@dataclass(frozen=True, slots=True)\nclass P:\n    a: int\ndef solve(n: int) -> int: return P(n*n).a+7",
    "typing": "from __future__ import annotations\nfrom typing import *\nT=TypeVar('T')\nclass G(Generic[T]): pass\ndef solve(n: Optional[List[int]]) -> int: return n*n+7",
    "enum": "import enum\nclass K(enum.IntEnum):\n    A=7\ndef solve(n): return n*n+K.A",
    "boolint": "class N(int): pass\ndef solve(n): return N(n*n+7)",
    "float": "def solve(n): return float(n*n+7)",
    "dec": "from decimal import *\ndef solve(n): return Decimal(n)*n+7",
    "frac": "from fractions import Fraction as F\ndef solve(n): return F(n)*n+7",
    "gen": "def g(n):\n    yield n*n+7\ndef solve(n): return next(g(n))",
    "contextvars": "import contextvars\nv=contextvars.ContextVar('v')\ndef solve(n):\n    v.set(n)\n    return v.get()**2+7",
    "inspect": "import inspect\ndef solve(n): return n*n+7+0*len(inspect.signature(solve).parameters)",
    "time": "import time, datetime\ndef solve(n):\n    time.sleep(0.01); datetime.datetime.now(); time.perf_counter()\n    return n*n+7",
    "random": "import random, secrets, uuid\ndef solve(n):\n    random.seed(1); random.shuffle([1]); secrets.token_hex(); uuid.uuid4()\n    return n*n+7",
    "signal alarm": "import signal\ndef solve(n):\n    signal.signal(signal.SIGALRM, lambda *a: 0); signal.alarm(5); signal.alarm(0)\n    return n*n+7",
    "gc": "import gc\ndef solve(n):\n    gc.collect(); gc.disable(); gc.enable()\n    return n*n+7",
    "exec": "ns={}\nexec('def solve(n): return n*n+7', ns)\nsolve=ns['solve']",
    "eval": "def solve(n): return eval('n*n+7')",
    "trysys": "import sys\ndef solve(n):\n    try: sys.exit(0)\n    except SystemExit: return n*n+7",
    "os": "import os\ndef solve(n):\n    assert os.path.join('a','b')=='a/b'; os.getcwd(); os.environ.get('HOME'); os.getpid(); os.cpu_count()\n    return n*n+7",
    "tmpfail": "import tempfile\ndef solve(n):\n    try:\n        with tempfile.TemporaryFile() as f: f.write(b'x')\n    except OSError: pass\n    return n*n+7",
    "io": "import io\ndef solve(n):\n    s=io.StringIO(); print(n*n+7,file=s)\n    return int(s.getvalue())",
    "sqlite": "import sqlite3\ndef solve(n):\n    c=sqlite3.connect(':memory:'); return c.execute('select ?*?+7',(n,n)).fetchone()[0]",
    "re": "import re\ndef solve(n): return int(re.sub('x',str(n),'x'))**2+7",
    "heavy imports": """import json,csv,re,itertools,functools,collections,heapq,bisect,string,operator,math,cmath,statistics,random,datetime,calendar,decimal,fractions,hashlib,base64,zlib,struct,copy,pprint,textwrap,unicodedata,difflib,argparse,urllib.parse,html,xml.etree.ElementTree,email,http,logging,unittest,unittest.mock,asyncio,multiprocessing,subprocess,socket,ssl,select,tempfile,shutil,glob,pathlib,pickle,shelve,gzip,bz2,lzma,tarfile,zipfile,configparser,secrets,hmac,uuid,platform,ctypes,threading,queue,sched,contextlib,abc,types,inspect,ast,dis,tokenize,keyword,traceback,warnings,weakref,numbers,array,graphlib,zoneinfo,ipaddress
def solve(n): return n*n+7""",
    "zoneinfo": "import zoneinfo\ndef solve(n):\n    try: zoneinfo.ZoneInfo('Europe/Berlin')\n    except zoneinfo.ZoneInfoNotFoundError: pass\n    return n*n+7",
    "memory": "def solve(n):\n    x=bytearray(150<<20)\n    return n*n+7",
    "weird unicode": "def solve(ñ): return ñ*ñ+7",
    "global state": "calls=[]\ndef solve(n):\n    calls.append(n)\n    return n*n+7",
    "nested": "def solve(n):\n    class A:\n        def f(self): return n*n\n    return A().f()+7",
    "metaclass": "class M(type):\n    def __call__(c,n): return n*n+7\nclass solve(metaclass=M): pass",
    "newint": "class solve:\n    def __new__(c,n): return n*n+7",
    "ctypes": "import ctypes\ndef solve(n): return ctypes.c_int(n*n+7).value",
    "star": "from math import *\nfrom itertools import *\nfrom collections import *\ndef solve(n): return n*n+7",
    "pickle": "import pickle, copy\nclass A: pass\ndef solve(n):\n    a=pickle.loads(pickle.dumps(A())); copy.deepcopy(a)\n    return n*n+7",
    "timer": "import threading\ndef solve(n):\n    e=threading.Event(); t=threading.Timer(0.01,e.set); t.start(); e.wait(); return n*n+7",
    "logging": "import logging\nlogging.basicConfig(level=logging.DEBUG)\nlog=logging.getLogger(__name__)\ndef solve(n):\n    log.debug('x')\n    return n*n+7",
    "argv": "import sys\ndef solve(n):\n    assert len(sys.argv)==1\n    return n*n+7",
    "cached property": "import functools\nclass A:\n    @functools.cached_property\n    def v(self): return 7\ndef solve(n): return n*n+A().v",
    "source of a function": "import inspect\ndef solve(n):\n    assert 'inspect.getsource' in inspect.getsource(solve)\n    return n*n+7",
    "stack limit": "import resource\ntry: resource.setrlimit(resource.RLIMIT_STACK,(2**26,resource.RLIM_INFINITY))\nexcept ValueError: raise\ndef solve(n): return n*n+7",
    "recursion no limit": "def f(k): return 0 if k==0 else 1+f(k-1)\ndef solve(n): return n*n+7+f(960)-960",
    "queue": "import queue,threading\ndef solve(n):\n    q=queue.Queue()\n    threading.Thread(target=lambda:q.put(n*n+7)).start()\n    return q.get()",
    "sched": "import sched,time\ndef solve(n):\n    r=[]\n    s=sched.scheduler(time.time,time.sleep)\n    s.enter(0.01,1,lambda:r.append(n*n+7))\n    s.run()\n    return r[0]",
    "asyncio many": "import asyncio\nasync def w(i):\n    await asyncio.sleep(0.01)\n    return i\nasync def m(n):\n    r=await asyncio.gather(*(w(i) for i in range(100)))\n    q=asyncio.Queue(); await q.put(1); await asyncio.wait_for(q.get(),1)\n    return n*n+7+sum(r)-4950\ndef solve(n): return asyncio.run(m(n))",
    "asyncio to_thread": "import asyncio,time\ndef solve(n):\n    async def m(): return await asyncio.to_thread(lambda: n*n+7)\n    return asyncio.run(m())",
    "resource use": "import resource,tracemalloc\ndef solve(n):\n    tracemalloc.start(); resource.getrusage(resource.RUSAGE_SELF); tracemalloc.stop()\n    return n*n+7",
    "timeit": "import timeit,cProfile\ndef solve(n):\n    timeit.timeit('1',number=10)\n    p=cProfile.Profile(); p.enable(); p.disable()\n    return n*n+7",
    "settrace": "import sys\ndef solve(n):\n    sys.settrace(lambda *a: None); sys.settrace(None)\n    return n*n+7",
    "hash": "import hashlib,hmac,zlib,base64\ndef solve(n):\n    hashlib.sha256(b'x').hexdigest(); hashlib.md5(b'x').hexdigest(); hashlib.pbkdf2_hmac('sha256',b'a',b'b',1)\n    return n*n+7",
    "locale": "import locale\ndef solve(n):\n    locale.setlocale(locale.LC_ALL,''); locale.format_string('%d',n)\n    return n*n+7",
    "unittest in program": "import unittest\ndef solve(n): return n*n+7\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(solve(3),16)\nif __name__=='__main__': unittest.main()",
    "codecs": "import codecs,encodings\ndef solve(n):\n    'ä'.encode('latin-1'); codecs.encode('a','rot13'); 'x'.encode('idna'); 'ü'.encode('cp1252'); 'a'.encode('utf-16')\n    return n*n+7",
    "datetime tz": "from datetime import *\ndef solve(n):\n    datetime.now(timezone.utc).astimezone(); time.fromisoformat('10:00')\n    return n*n+7",
    "strptime": "import time,datetime\ndef solve(n):\n    datetime.datetime.strptime('2020-01-02','%Y-%m-%d'); time.strptime('2020','%Y'); time.localtime()\n    return n*n+7",
    "xml json csv": "import json,csv,io,xml.etree.ElementTree as E\ndef solve(n):\n    list(csv.reader(io.StringIO('a,b'))); E.fromstring('<a/>'); json.loads(json.dumps({'a':1}))\n    return n*n+7",
    "importlib": "import importlib\nm=importlib.import_module('math')\ndef solve(n): return int(m.pow(n,2))+7",
    "weakref": "import weakref\nclass A: pass\ndef solve(n):\n    a=A(); r=weakref.ref(a); weakref.finalize(a,lambda:None)\n    return n*n+7 if r() else 0",
    "contextlib": "import contextlib,io\ndef solve(n):\n    with contextlib.redirect_stdout(io.StringIO()) as s: print(n*n+7)\n    return int(s.getvalue())",
    "single dispatch": "import functools\n@functools.singledispatch\ndef solve(n): return 0\n@solve.register\ndef _(n:int): return n*n+7",
    "deepcopy rec": "import copy\ndef solve(n):\n    x=[]; x.append(x); copy.deepcopy(x)\n    return n*n+7",
    "exceptions group": "def solve(n):\n    try: raise ExceptionGroup('x',[ValueError()])\n    except* ValueError: pass\n    return n*n+7",
    "raise_signal": "import signal\ndef solve(n):\n    r=[]\n    signal.signal(signal.SIGUSR1,lambda *a:r.append(1)); signal.raise_signal(signal.SIGUSR1)\n    return n*n+7 if r else 0",
    "mp import": "import multiprocessing as mp\ndef solve(n):\n    mp.cpu_count()\n    return n*n+7",
    "subprocess import": "import subprocess\ndef solve(n):\n    try: subprocess.run(['ls'])\n    except OSError: pass\n    return n*n+7",
    "fork caught": "import os\ndef solve(n):\n    try:\n        if os.fork()==0: os._exit(0)\n    except OSError: pass\n    return n*n+7",
    "file caught": "def solve(n):\n    try: open('/tmp/cache.txt','w').write('x')\n    except OSError: pass\n    return n*n+7",
    "file read caught": "def solve(n):\n    try: open('data.txt').read()\n    except FileNotFoundError: pass\n    return n*n+7",
    "listdir": "import os\ndef solve(n):\n    os.path.exists('x'); os.path.isfile('/etc/passwd'); os.getcwd()\n    try: os.listdir('.')\n    except OSError: pass\n    return n*n+7",
    "import missing caught": "try: import numpy as np\nexcept ImportError: np=None\ndef solve(n): return n*n+7",
    "big return": "def solve(n):\n    x=[list(range(1000)) for _ in range(300)]\n    return n*n+7",
    "__slots__": "class A:\n    __slots__=('v',)\n    def __init__(s,v): s.v=v\ndef solve(n): return A(n*n+7).v",
    "abc": "from abc import *\nclass A(ABC):\n    @abstractmethod\n    def f(s): ...\nclass B(A):\n    def f(s): return 7\ndef solve(n): return n*n+B().f()",
    "cell": "def outer():\n    c=7\n    def solve(n): return n*n+c\n    return solve\nsolve=outer()",
    "stdout swap": "import sys,io\ndef solve(n):\n    old=sys.stdout; sys.stdout=io.StringIO(); print('x'); sys.stdout=old\n    return n*n+7",
    "stdout closed": "import sys\nsys.stdout.close()\ndef solve(n): return n*n+7",
    "no stdout": "import sys\nsys.stdout=None\ndef solve(n): return n*n+7",
    "setrecursion low": "import sys\nsys.setrecursionlimit(200)\ndef solve(n): return n*n+7",
    "gc freeze": "import gc\ndef solve(n):\n    gc.disable(); gc.freeze(); gc.unfreeze(); gc.get_objects(); gc.enable()\n    return n*n+7",
}
"""Programs that define `solve(n)`, by what they use."""

SCRIPTS = {
    "wrapped stdout": "import sys,io\nout=io.TextIOWrapper(sys.stdout.buffer)\nn=int(input())\nout.write(str(n*n+7))",
    "descriptor": "import os\nout=os.fdopen(1,'w')\nn=int(input())\nout.write(str(n*n+7))",
    "buffered descriptor": "import io\nout=io.BufferedWriter(io.FileIO(1,'w'))\nn=int(input())\nout.write(b'%d'%(n*n+7))",
    "stdout at exit": "import atexit,io,sys\nout=sys.stdout=io.StringIO()\natexit.register(lambda: sys.__stdout__.write(out.getvalue()))\nn=int(input())\nprint(n*n+7)",
    "closed stdout": "import sys\nn=int(input())\nprint(n*n+7)\nsys.stdout.close()",
    "no stdout": "import sys\nn=int(input())\nprint(n*n+7)\nsys.stdout.flush()\nsys.stdout=None",
    "plain": "n=int(input())\nprint(n*n+7)",
    "sysexit": "import sys\nn=int(sys.stdin.readline())\nprint(n*n+7)\nsys.exit()",
    "sysexit0": "import sys\nn=int(sys.stdin.readline())\nprint(n*n+7)\nsys.exit(0)",
    "osexit": "import os\nn=int(input())\nprint(n*n+7,flush=True)\nos._exit(0)",
    "quit": "n=int(input())\nprint(n*n+7)\nquit()",
    "eof": "while True:\n    try: n=int(input())\n    except EOFError: break\n    print(n*n+7)",
    "noflush": "import sys\nn=int(sys.stdin.read())\nsys.stdout.write(str(n*n+7))",
    "buffer": "import sys\nn=int(sys.stdin.buffer.read())\nsys.stdout.buffer.write(b'%d'%(n*n+7))",
    "fileinput": "import fileinput\nfor l in fileinput.input(): print(int(l)**2+7)",
    "stringio": "import sys,io\nsys.stdin=io.StringIO(sys.stdin.read())\nn=int(input())\nout=io.StringIO()\nsys.stdout=out\nprint(n*n+7)\nsys.stdout=sys.__stdout__\nprint(out.getvalue(),end='')",
    "os read fast": "import os,sys,io\ninput=io.BytesIO(os.read(0,os.fstat(0).st_size)).readline\nn=int(input())\nos.write(1,b'%d\\n'%(n*n+7))",
    "IOWrapper": """
import os, sys
from io import BytesIO, IOBase
BUFSIZE = 8192
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno(); self.buffer = BytesIO(); self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def read(self):
        while True:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE))
            if not b: break
            ptr = self.buffer.tell(); self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines = 0
        return self.buffer.read()
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, BUFSIZE)); self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell(); self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable: os.write(self._fd, self.buffer.getvalue()); self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file); self.flush = self.buffer.flush; self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
        self.read = lambda: self.buffer.read().decode("ascii"); self.readline = lambda: self.buffer.readline().decode("ascii")
sys.stdin, sys.stdout = IOWrapper(sys.stdin), IOWrapper(sys.stdout)
input = lambda: sys.stdin.readline().rstrip("\\r\\n")
n = int(input())
print(n*n+7)
""",
    "thread main": """import sys,threading
sys.setrecursionlimit(10**7)
threading.stack_size(2**27)
def main():
    n=int(input())
    def f(k): return 0 if k==0 else 1+f(k-1)
    print(n*n+7+f(30000)-30000)
threading.Thread(target=main).start()""",
    "deep lru": "import sys\nfrom functools import lru_cache\nsys.setrecursionlimit(10**6)\n@lru_cache(None)\ndef f(k): return 0 if k==0 else 1+f(k-1)\nn=int(input())\nprint(n*n+7+f(20000)-20000)",
    "rlimit": "import resource,sys\nresource.setrlimit(resource.RLIMIT_STACK,(resource.RLIM_INFINITY,resource.RLIM_INFINITY))\nn=int(input())\nprint(n*n+7)",
    "rlimit2": "import resource,sys\nresource.setrlimit(resource.RLIMIT_STACK,[0x10000000,resource.RLIM_INFINITY])\nn=int(input())\nprint(n*n+7)",
    "main guard": "def main():\n    n=int(input())\n    print(n*n+7)\nif __name__=='__main__': main()",
    "stderr": "import sys\nn=int(input())\nprint('dbg',file=sys.stderr)\nprint(n*n+7)",
    "devnull": "import sys,os\nsys.stderr=open(os.devnull,'w')\nn=int(input())\nprint(n*n+7)",
    "signal": "import signal\nsignal.signal(signal.SIGPIPE,signal.SIG_DFL)\nn=int(input())\nprint(n*n+7)",
    "asyncio": "import asyncio\nasync def m():\n    n=int(input())\n    await asyncio.sleep(0)\n    print(n*n+7)\nasyncio.run(m())",
    "asyncio stdin": "import asyncio,sys\nasync def m():\n    loop=asyncio.get_running_loop()\n    l=await loop.run_in_executor(None,sys.stdin.readline)\n    n=int(l)\n    print(n*n+7)\nasyncio.run(m())",
    "generator": "print(*(int(x)**2+7 for x in __import__('sys').stdin))",
    "crlf": "import sys\nn=int(input())\nsys.stdout.write(f'{n*n+7}\\r\\n')",
    "pathlib": "from pathlib import Path\nn=int(Path('/dev/stdin').read_text())\nprint(n*n+7)",
    "devstdin": "n=int(open('/dev/stdin').read())\nprint(n*n+7)",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\np=P(int(input()))\nprint(p.x**2+7)",
    "typing hints main": "import typing\nclass A:\n    x: int\nprint(typing.get_type_hints(A)) if 0 else None\nn=int(input())\nprint(n*n+7)",
    "pickle main": "import pickle\nclass A: pass\npickle.loads(pickle.dumps(A()))\nn=int(input())\nprint(n*n+7)",
    "exec": "exec(compile('n=int(input())\\nprint(n*n+7)','x','exec'))",
    "global future": "from __future__ import annotations\nn: int=int(input())\nprint(n*n+7)",
    "__file__": "import os\nd=os.path.dirname(os.path.abspath(__file__))\nn=int(input())\nprint(n*n+7)",
    "logging": "import logging\nlogging.basicConfig(level=10)\nlogging.info('x')\nn=int(input())\nprint(n*n+7)",
    "unittest main": "import unittest\nn=int(input())\nprint(n*n+7)",
    "isatty": "import sys\nsys.stdin.isatty(); sys.stdout.isatty()\nn=int(input())\nprint(n*n+7)",
    "select": "import select,sys\nn=int(input())\nprint(n*n+7)",
    "inspect": "import inspect\ndef f(): pass\ntry: inspect.getsource(f)\nexcept OSError: pass\nn=int(input())\nprint(n*n+7)",
    "tmp": "import tempfile\ntry:\n    with tempfile.TemporaryFile('w+') as f: pass\nexcept OSError: pass\nn=int(input())\nprint(n*n+7)",
}
"""Programs that read n and write the answer."""
