# zygote.py - a Python that loads its libraries once and is forked into sessions
#
# Started by the spawner with `python3 -I`, the library of this folder beside it. Descriptor 4 is
# this text, 5 the driver of the sessions (sandbox/init/driver.py). Only what the operator named and
# the standard library is imported here: nothing of any session ever reaches this process.


def _otari_zygote():
    import ctypes
    import gc
    import os
    import sys

    library = ctypes.PyDLL("/dev/shm/otari-zygote.so")
    library.zygote_modules.restype = ctypes.c_char_p
    if library.zygote_setup() != 0:
        os._exit(3)
    names = {"__name__": "otari_driver", "__builtins__": __builtins__}
    with open(5) as f:
        exec(compile(f.read(), "<string>", "exec"), names)
    sys.dont_write_bytecode = True

    standard = """ast bisect builtins base64 collections collections.abc concurrent.futures contextlib
        copy csv dataclasses datetime decimal difflib enum fractions functools glob gzip hashlib heapq
        html importlib.util inspect io itertools json linecache logging math operator os pathlib pickle
        pprint queue random re shutil signal sqlite3 statistics string struct subprocess sys tempfile
        textwrap threading time traceback types typing unicodedata urllib.parse uuid warnings
        xml.etree.ElementTree zipfile zlib"""
    failed = []
    for name in standard.split():
        try:
            __import__(name)
        except ImportError:
            pass
    for name in library.zygote_modules().decode().split(","):
        try:
            if name:
                __import__(name)
        except ImportError:
            pass
        except BaseException as e:
            failed.append("%s: %s" % (name, type(e).__name__))
    numpy_random = sys.modules.get("numpy.random")

    api = ctypes.pythonapi
    before, parent, child = api.PyOS_BeforeFork, api.PyOS_AfterFork_Parent, api.PyOS_AfterFork_Child
    for f in (before, parent, child):
        f.restype = None
    wait, fork, forked = library.zygote_wait, library.zygote_fork, library.zygote_forked
    serve, rehearse = names["_otari_driver"]()
    rehearse()
    for _ in range(20):  # likewise: what it does holds for this process, too
        before()
        child()
    for stream in (sys.stdout, sys.stderr):  # what modules said would be said by every child
        try:
            stream.flush()
        except OSError:
            os._exit(4)
    gc.collect()
    gc.freeze()
    library.zygote_loaded(", ".join(failed).encode())
    while wait() == 1:
        before()
        pid = fork()
        if pid == 0:
            child()
            for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
                os.environ[name] = "2"
            if numpy_random is not None:
                numpy_random.seed()
            return serve
        parent()
        forked(pid, 11)
    os._exit(0)


_otari_zygote()()
