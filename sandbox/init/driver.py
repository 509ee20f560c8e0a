# driver.py - the persistent interpreter of a session; otari-init starts it with `python3 -I`
#
# Descriptor 3 carries {u32 length, source} in and {"OtRp", u32 status, i32 code, u32 0} out,
# little-endian. Everything else that the code prints goes to the pipes on 1 and 2. The code of a
# call runs in one lasting __main__; what it does to this loop ends at worst its own session.


def _otari_driver():
    import ast
    import builtins
    import linecache
    import os
    import signal
    import struct
    import sys
    import traceback
    import types

    READY, OK, ERROR, EXIT = 1, 2, 3, 4
    # Goes the way of any call: what it touches is there for the first real one. But each page that it
    # touches is a session's own from then on, so it uses little else.
    WARM_UP = """import math
def _otari(a):
    for x in range(3):
        a += x
    return f"{a}"
_otari(1)
print(end="")
None
"""
    pid = os.getpid()
    outputs = os.environ.get("OUTPUT_DIR", ".")
    running = False
    cells = 0

    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    sys.argv = [""]
    sys.path.insert(0, "")
    sys.dont_write_bytecode = True

    def leave(code=None):
        raise SystemExit(code)

    builtins.exit = builtins.quit = leave  # site's own close stdin

    def on_interrupt(_signum, _frame):
        if running:
            raise KeyboardInterrupt

    def quiet_matplotlib():
        """What it says about having no window is no error of the code."""
        import logging
        import warnings

        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
        for text in ("Matplotlib is currently using agg", "FigureCanvasAgg is non-interactive"):
            warnings.filterwarnings("ignore", message=text)

    def mark_saved(module):
        quiet_matplotlib()
        save = module.Figure.savefig

        def savefig(self, *args, **kwargs):
            self._otari_saved = True
            return save(self, *args, **kwargs)

        savefig.__doc__ = save.__doc__
        module.Figure.savefig = savefig

    class FigureFinder:
        """Marks figures that were saved, from the moment matplotlib is imported."""

        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "matplotlib.figure":
                return None
            sys.meta_path[:] = [f for f in sys.meta_path if f is not FigureFinder]
            import importlib.util

            spec = importlib.util.find_spec(name)
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                mark_saved(module)

            spec.loader.exec_module = exec_module
            return spec

    if "matplotlib.figure" in sys.modules:  # of a zygote
        mark_saved(sys.modules["matplotlib.figure"])
    else:
        sys.meta_path.insert(0, FigureFinder)

    def save_figures():
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is None:
            return
        number = 0
        for num in plt.get_fignums():
            figure = plt.figure(num)
            if getattr(figure, "_otari_saved", False) or not figure.axes:
                continue
            number += 1
            while os.path.lexists(outputs + "/figure_%d.png" % number):
                number += 1
            os.makedirs(outputs, exist_ok=True)
            figure.savefig(outputs + "/figure_%d.png" % number)
            plt.close(figure)

    def reap():
        """Children that were killed between calls: told to their owners, then let go."""
        try:
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return
            if "multiprocessing" in sys.modules:
                sys.modules["multiprocessing"].active_children()
            if "subprocess" in sys.modules:
                import gc

                popen = sys.modules["subprocess"].Popen
                for o in gc.get_objects():
                    if isinstance(o, popen):
                        o.poll()
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except Exception:
            pass

    def read_exact(n):
        parts = []
        while n > 0:
            part = os.read(3, min(n, 1 << 20))
            if not part:
                os._exit(0)
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def reply(status, code):
        os.write(3, struct.pack("<4sIiI", b"OtRp", status, code, 0))

    def flush():
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            try:
                stream.flush()
            except BaseException:
                pass
        if "ctypes" in sys.modules:
            try:
                sys.modules["ctypes"].CDLL(None).fflush(None)
            except BaseException:
                pass

    def show_error(e):
        tb = e.__traceback__
        while tb is not None and not tb.tb_frame.f_code.co_filename.startswith("<cell "):
            tb = tb.tb_next
        try:
            traceback.print_exception(type(e), e.with_traceback(tb), tb)
        except BaseException:
            os.write(2, ("%s (its traceback failed)\n" % type(e).__name__).encode())

    def exit_code(e):
        if e.code is None:
            return 0
        if isinstance(e.code, int):
            return e.code & 0xFF
        print(e.code, file=sys.stderr)
        return 1

    def compile_cell(source, name):
        tree = ast.parse(source, name)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
            last = compile(
                ast.Expression(tree.body.pop().value), name, "eval", dont_inherit=True
            )
        return compile(tree, name, "exec", dont_inherit=True), last

    def run(source):
        nonlocal running, cells
        cells += 1
        name = "<cell %d>" % cells
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        signal.signal(signal.SIGINT, on_interrupt)
        status, code = OK, 0
        try:
            body, last = compile_cell(source, name)
            running = True
            exec(body, main.__dict__)
            if last is not None:
                value = eval(last, main.__dict__)
                if value is not None:
                    main.__dict__["_"] = value
                    print(repr(value))
            save_figures()
            running = False
        except SystemExit as e:
            running = False
            status, code = EXIT, exit_code(e)
        except BaseException as e:
            running = False
            status, code = ERROR, 1
            show_error(e)
        flush()
        if os.getpid() != pid:  # a fork of the code that came back here
            os._exit(code)
        return status, code

    def rehearse():
        """In a zygote: what a call settles once is settled before the forks, which then share it."""
        nonlocal cells
        for _ in range(20):
            run(WARM_UP)
        main.__dict__.pop("_otari", None)
        cells = 0

    def serve():
        nonlocal pid, running, cells
        pid = os.getpid()
        try:  # out of memory on the host: this process goes first
            with open("/proc/self/oom_score_adj", "w") as f:
                f.write("1000")
        except OSError:
            pass
        reply(READY, 0)
        while True:
            (size,) = struct.unpack("<I", read_exact(4))
            try:
                reap()
                source = read_exact(size).decode("utf-8", "replace")
                status, code = run(source or WARM_UP)
            except KeyboardInterrupt:
                running = False
                status, code = ERROR, 1
            if size == 0:
                cells = 0
                main.__dict__.pop("_otari", None)
            reply(status, code)

    return serve, rehearse


if __name__ == "__main__":  # not in a zygote
    _otari_driver()[0]()
