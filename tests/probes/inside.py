# What a session's own kernel objects could be made to do to others; the prelude is the one of escape.py.

#: no program for the kernel on a socket [filter]
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xffff))
program = ctypes.create_string_buffer(struct.pack("H6xQ", 1, ctypes.addressof(code)))
a, b = socket.socketpair()
for fd in (a.fileno(), 3):
    for option in (26, 27, 44, 50, 51, 52, (1 << 32) | 26):
        call("option %d of a socket" % option, 54, fd, 1, option, program, 16)
a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
a.settimeout(1)

#: the output stays a stream [filter]
import fcntl
for fd in (1, 2):
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    refused("packets", fcntl.fcntl, fd, fcntl.F_SETFL, flags | os.O_DIRECT)
    refused("packets by name", os.open, "/dev/fd/%d" % fd, os.O_WRONLY | os.O_DIRECT)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags)

#: a crash is handed to no program of the host
none = ctypes.create_string_buffer(bytes(16))
def core():
    return resource.getrlimit(resource.RLIMIT_CORE)
if core() != (1, 1):
    got(core())
if FILTER:
    for limits in ((0, 0), (0, 1), (1, 1)):
        resource.setrlimit(resource.RLIMIT_CORE, limits)
    for nr, args in ((160, (4, none)), (160, ((1 << 32) | 4, none)), (302, (0, 4, none, 0)),
                     (302, (1 << 32, (1 << 32) | 4, none, 0)), (302, (os.getpid(), 4, none, 0))):
        libc.syscall(ctypes.c_long(nr), *[ctypes.c_ulong(x) if isinstance(x, int) else x for x in args])
    if core() != (1, 1):
        got("set to", core())
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
for path in ("/work", "/tmp"):
    os.chdir(path)
    p = subprocess.run([sys.executable, "-c", "import os; os.abort()"])
    if p.returncode != -signal.SIGABRT or any("core" in n for n in os.listdir(path)):
        got(p.returncode, os.listdir(path))

#: calls of another architecture end who makes them [filter]
import mmap
for name, code in (("int 0x80", b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"), ("x32", b"\xb8\x27\x00\x00\x40\x0f\x05\xc3")):
    pid = os.fork()
    if pid == 0:
        m = mmap.mmap(-1, 4096, prot=7)
        m.write(code)
        ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in (signal.SIGSYS, signal.SIGSEGV):
        got(name, status)

#: no call of a newer kernel is open [filter]
for nr in list(range(442, 520)) + [1023, 0x3fffffff]:
    if nr not in (449, 452, 454, 455, 456):
        call("%d" % nr, nr, 0, 0, 0, 0, 0, 0)

#: who sends on a socket cannot be made up
a, b = socket.socketpair()
b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s = socket.socket(fileno=os.dup(3))
for pid, uid, gid in ((1, 1000, 1000), (1, 0, 0), (os.getpid(), 0, 1000), (os.getpid(), 1000, 0),
                      (os.getpid(), 65534, 65534)):
    for one in (a, s):
        refused((pid, uid, gid), one.sendmsg, [b"x"],
                [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", pid, uid, gid))])

#: every program has the same walls
look = ("import ctypes; s = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
        "print(*[s[k].strip() for k in ('Uid', 'CapPrm', 'CapBnd', 'NoNewPrivs', 'Seccomp')],"
        " ctypes.CDLL(None).unshare(0x10020000))")
python = os.path.realpath(sys.executable)
want = None
for argv in ([python], ["/bin/bash", "-c", 'exec "$0" "$@"', python], ["/usr/bin/env", "-i", python],
             ["/usr/bin/setsid", "-w", python], ["/usr/bin/nohup", python], ["/lib64/ld-linux-x86-64.so.2", python]):
    if not os.path.exists(argv[0]):
        continue
    p = subprocess.run(argv + ["-c", look], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    want = want or "1000\t1000\t1000\t1000 %016x %016x 1 %d " % (0, 0, 2 if FILTER else 0)
    if p.returncode != 0 or not p.stdout.startswith(want) or FILTER and not p.stdout.endswith(" -1\n"):
        got(argv, p.stdout, p.stderr)

#: no lock, lease or mark on what others read
import fcntl
fd = os.open(sys.executable, os.O_RDONLY)
if FILTER:
    for request in (1024, 1026, 1036, 1037):
        refused("fcntl %d" % request, fcntl.fcntl, fd, request, 1)
refused("a lock to write", fcntl.lockf, fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
refused("its times", os.utime, sys.executable)
refused("its times by descriptor", os.utime, fd)
refused("its mode", os.fchmod, fd, 0o755)
refused("its length", os.truncate, sys.executable, 1 << 40)
refused("a hole in it", os.posix_fallocate, fd, 0, 1)

#: clocks and names are the host's to set
for clock in (0, 1, 4, 5, 7, 11):
    refused("clock %d" % clock, time.clock_settime, clock, 1.0)
refused("the name", socket.sethostname, "x")
closed("the domain", 171, text("x"), 1)
closed("the zone", 164, 0, ctypes.create_string_buffer(bytes(8)))
closed("an adjustment", 159, ctypes.create_string_buffer(struct.pack("I", 0x4000) + bytes(204)))
closed("an alarm that wakes the host", 222, 9, 0, ctypes.byref(ctypes.c_int()))

#: memory is neither pushed out nor merged [filter]
import mmap
m = mmap.mmap(-1, 1 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
for advice in (12, 21, 100, 101, (1 << 32) | 21):
    closed("advice %d" % advice, 28, at, 1 << 20, advice)
m2 = mmap.mmap(-1, 1 << 20)
m2.madvise(mmap.MADV_DONTNEED)

#: the nodes of devices are not to be changed, and work
for name in ("null", "zero", "full", "random", "urandom"):
    path = "/dev/" + name
    refused(path, os.utime, path)
    refused(path, os.utime, path, (0, 0))
    refused(path, os.chmod, path, 0o600)
    refused(path, os.unlink, path)
    refused(path, os.rename, path, "/dev/shm/x")
    fd = os.open(path, os.O_RDWR)
    refused(path, os.utime, fd)
    refused(path, os.fchmod, fd, 0o600)
open("/dev/null", "w").write("x")
if open("/dev/zero", "rb").read(4) != bytes(4) or len(open("/dev/urandom", "rb").read(4)) != 4:
    got("a device that does not work")
if subprocess.run(["bash", "-c", "echo x > /dev/null && head -c 1 /dev/random >> /dev/null"]).returncode != 0:
    got("a device that a shell cannot use")
