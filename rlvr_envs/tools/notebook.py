"""The function that runs the cells of `PythonTool` in the sandbox. Only the source of this function is sent to the sandbox."""

from __future__ import annotations


def notebook(cells: list[str], seconds: float) -> None:
    """Run cells one after the other in one namespace, and print the last cell's output and its value or error.

    Args:
        cells: The source of each cell.
        seconds: Limit on the CPU time of each cell.
    """
    import ast
    import contextlib
    import io
    import linecache
    import signal
    import traceback

    class CellTimeout(BaseException):
        """Ends a cell, even if the cell catches all exceptions."""

    CellTimeout.__module__, CellTimeout.__qualname__ = "builtins", "TimeoutError"  # the name in messages

    def stop(number: int, frame: object) -> None:
        raise CellTimeout(f"the cell took more than {seconds:g} s of CPU time")

    scope: dict[str, object] = {"__name__": "__main__"}

    def run(source: str, name: str) -> None:
        linecache.cache[name] = len(source), None, source.splitlines(True), name
        tree = ast.parse(source, name)
        last = tree.body[-1] if tree.body else None
        if not isinstance(last, ast.Expr):
            exec(compile(tree, name, "exec"), scope)
            return
        tree.body.pop()
        exec(compile(tree, name, "exec"), scope)
        value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
        if value is not None:
            print(repr(value))

    def limited(source: str, name: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            run(source, name)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    signal.signal(signal.SIGPROF, stop)
    for number, source in enumerate(cells[:-1], start=1):
        nothing = io.StringIO()
        with (
            contextlib.suppress(BaseException),
            contextlib.redirect_stdout(nothing),
            contextlib.redirect_stderr(nothing),
        ):
            limited(source, f"<cell {number}>")
    try:
        limited(cells[-1], f"<cell {len(cells)}>")
    except BaseException as error:  # noqa: BLE001 - shown
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith("<cell ")]
        if own:
            print(f"{own[-1].filename[1:-1]}, line {own[-1].lineno}: {own[-1].line}")
        print("".join(traceback.format_exception_only(error)).strip())
