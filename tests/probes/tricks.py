# More of what escape.py has, one trick a piece; the prelude is the one of escape.py.

#: a file of the host has no path
for p in (HOST_FILE, "/proc/1/root" + HOST_FILE, "/proc/self/root" + HOST_FILE, "/proc/self/cwd/../.." + HOST_FILE,
          "/dev/fd/0/../../.." + HOST_FILE, "/mnt/data/../.." + HOST_FILE):
    refused(p, lambda: open(p).read())
for root, dirs, files in os.walk("/"):
    if root.startswith(("/proc", "/usr")):
        dirs[:] = []
    if os.path.basename(HOST_FILE) in files + dirs:
        got(root)

#: init is out of reach
pidfd = libc.syscall(434, 1, 0)
for fd in range(8):
    closed("pidfd_getfd", 438, pidfd, fd, 0)
for flag in (0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x7e020000):
    closed("setns of a pidfd", 308, pidfd, flag)
for n, flags in (("mem", os.O_RDWR), ("mem", os.O_RDONLY), ("maps", os.O_RDONLY), ("exe", os.O_RDONLY),
                 ("exe", os.O_PATH), ("root", os.O_PATH), ("cwd", os.O_PATH), ("ns/mnt", os.O_RDONLY),
                 ("fd/3", os.O_RDWR), ("fdinfo/3", os.O_RDONLY), ("oom_score_adj", os.O_WRONLY),
                 ("uid_map", os.O_WRONLY), ("setgroups", os.O_WRONLY), ("clear_refs", os.O_WRONLY)):
    refused(n, os.open, "/proc/1/" + n, flags)
buf, far = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
iov = struct.pack("4Q", ctypes.addressof(buf), 64, 0x400000, 64)
v = ctypes.create_string_buffer(iov)
closed("process_vm_readv", 310, 1, ctypes.addressof(v), 1, ctypes.addressof(v) + 16, 1, 0)
closed("process_vm_writev", 311, 1, ctypes.addressof(v), 1, ctypes.addressof(v) + 16, 1, 0)
for request in (16, 0x4206):
    closed("ptrace", 101, request, 1, 0, 0)
closed("kcmp", 312, 1, os.getpid(), 0, 0, 0)
if FILTER:
    closed("prlimit", 302, 1, 7, 0, ctypes.addressof(buf))
closed("migrate_pages", 256, 1, 8, 0, 0)
for sig in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGCHLD, 34, 64):
    libc.syscall(424, pidfd, int(sig), 0, 0)
info = ctypes.create_string_buffer(struct.pack("iiii", 9, 0, -1, 0) + bytes(112))
for nr in (129, 297):
    libc.syscall(nr, 1, *([9, info] if nr == 129 else [1, 9, info]))

#: the other end of a socket names nobody
s = socket.socket(fileno=os.dup(3))
try:
    pidfd = struct.unpack("i", s.getsockopt(socket.SOL_SOCKET, 77, 4))[0]
except OSError:
    pidfd = -1
if pidfd >= 0:
    peer = [l.split()[1] for l in open("/proc/self/fdinfo/%d" % pidfd) if l.startswith("Pid:")][0]
    if peer not in ("0", "1", "-1"):
        got("peer", peer)
    for sig in (0, 10) if peer != "1" else ():
        closed("signal of the peer", 424, pidfd, sig, 0, 0)
    closed("descriptor of the peer", 438, pidfd, 0, 0)
    closed("namespaces of the peer", 308, pidfd, 0x20000)
    for n in range(12):
        closed("namespace of the peer", 16, pidfd, 0xff01 + n, 0)

#: nothing of a terminal
import fcntl
for path in ("/dev/tty", "/dev/ptmx", "/dev/pts/0", "/dev/console", "/dev/tty1", "/dev/vcs"):
    refused(path, os.open, path, os.O_RDWR)
for fd in range(4):
    for request in (0x5412, 0x541c, 0x540e, 0x5423, (1 << 32) | 0x5412):
        closed("ioctl %x" % request, 16, fd, request, ctypes.c_char_p(b"x"))

#: no namespace to go into
spaces = [os.open("/proc/self/ns/" + n, os.O_RDONLY) for n in os.listdir("/proc/self/ns")]
for fd in spaces:
    closed("setns", 308, fd, 0)
    for request in (0xb701, 0xb702):
        r = libc.ioctl(fd, request, 0)
        if r >= 0:
            closed("setns of the one above", 308, r, 0)
for l in os.listdir("/proc/self/fd"):
    try:
        t = os.readlink("/proc/self/fd/" + l)
    except OSError:
        continue
    if int(l) not in spaces and (t.split(":")[0] in ("mnt", "net", "user", "pid", "ipc", "uts", "cgroup") or
                                 t.startswith("/") and not t.startswith(("/dev/", "/proc/"))):
        got(l, t)

#: a program of memory or with a set user id has no more rights
import shutil
def rights(path, fds=()):
    p = subprocess.run([path, "-c", "import os; print(os.geteuid(), open('/proc/self/status').read())"],
                       capture_output=True, text=True, env={"PYTHONHOME": "/usr"}, pass_fds=fds)
    if p.returncode == 0:
        uid, status = p.stdout.split(" ", 1)
        if uid != "1000" or "CapEff:\t0000000000000000" not in status or "NoNewPrivs:\t1" not in status:
            got(path, p.stdout)
shutil.copy(os.path.realpath(sys.executable), "/work/p")
for mode in (0o6755, 0o4755, 0o2755):
    os.chmod("/work/p", mode)
    rights("/work/p")
fd = libc.syscall(319, b"x", 0)
if fd >= 0:
    if FILTER:
        got("memfd")
    os.write(fd, open("/work/p", "rb").read())
    rights("/proc/self/fd/%d" % fd, [fd])

#: a path without a right stays one
for p in ("/", "/usr", "/proc", "/dev/null", "/init", "/proc/self", "/proc/self/exe"):
    try:
        fd = os.open(p, os.O_PATH)
    except OSError:
        continue
    refused(p, lambda: os.write(fd, b"x"))
    refused(p, lambda: os.open("/proc/self/fd/%d" % fd, os.O_WRONLY) if p != "/dev/null" else os.listdir(fd))
    refused(p, lambda: os.link("/proc/self/fd/%d" % fd, "/work/l", follow_symlinks=True))
    closed("linkat empty", 265, fd, text(""), -100, text("/work/l"), 0x1000)
    refused(p, os.fchmod, fd, 0o777)
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        refused(p, lambda: os.open("x", os.O_CREAT | os.O_RDWR, dir_fd=fd))
        f = os.open("../" * 40, os.O_RDONLY, dir_fd=fd)
        if sorted(os.listdir(f)) != sorted(os.listdir("/")):
            got("above", p)

#: a file has no handle to come back by
handle = ctypes.create_string_buffer(struct.pack("Ii", 64, 0) + bytes(64))
mount = ctypes.c_int()
for p in ("/", "/usr", "/work", "/proc"):
    r = libc.syscall(303, -100, text(p), handle, ctypes.byref(mount), 0)
    if r == 0 and FILTER:
        got("handle", p)
    closed("open_by_handle_at", 304, os.open(p, os.O_RDONLY), handle, 0)
for inode in (2, 128, 256):
    fid = ctypes.create_string_buffer(struct.pack("IiIIQ", 8, 1, inode, 0, 0) + bytes(64))
    closed("open_by_handle_at", 304, os.open("/usr", os.O_RDONLY), fid, 0)

#: a child has no more than its parent
args = lambda flags, **k: ctypes.create_string_buffer(struct.pack("11Q", flags, 0, 0, 0, 17, 0, 0, 0,
                                                     k.get("tid", 0), k.get("tids", 0), k.get("cgroup", 0)))
tid = ctypes.c_int(99)
closed("clone3 tid", 435, args(0, tid=ctypes.addressof(tid), tids=1), 88)
closed("clone3 cgroup", 435, args(1 << 33, cgroup=os.open("/work", os.O_RDONLY)), 88)
for flag in (0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
    closed("clone3 %x" % flag, 435, args(flag), 88)
    if flag != 0x80:
        closed("clone %x" % flag, 56, flag | 17, 0, 0, 0, 0)
    closed("unshare %x" % flag, 272, flag)

#: prctl gives no right back
for op, a in ((35, 1), (35, 8), (35, 14), (28, 0), (8, 1), (47, 2), (24, 0), (57, 1), (4, 2), (53, 3)):
    for second in (0, 1, 12, 21):
        r = libc.prctl(op, a, second, 0, 0)
        if r == 0 and op not in (4, 53):
            got("prctl", op, a, second)
data = ctypes.create_string_buffer(struct.pack("6I", 1 << 21, 1 << 21, 1 << 21, 0, 0, 0))
closed("capset", 126, ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0)), data)
for nr, name in ((105, "setuid"), (106, "setgid"), (117, "setresuid"), (119, "setresgid"), (113, "setreuid"),
                 (116, "setgroups")):
    closed(name, nr, 0, 0, 0)
for nr in (122, 123):
    libc.syscall(nr, 0)
    if libc.syscall(nr, 0xffffffff) == 0:
        got("setfsuid")
if os.getresuid() != (1000,) * 3 or os.getresgid() != (1000,) * 3:
    got(os.getresuid())

#: what proc lets be written is the process's own
for n, value in (("oom_score_adj", b"-1000"), ("oom_score_adj", b"-1"), ("oom_adj", b"-17"), ("uid_map", b"0 0 1"),
                 ("gid_map", b"0 0 1"), ("setgroups", b"allow"), ("loginuid", b"0"), ("attr/exec", b"x"),
                 ("attr/current", b"x"), ("timens_offsets", b"monotonic 1 1"), ("projid_map", b"0 0 1"),
                 ("sessionid", b"0"), ("latency", b"0")):
    refused(n, lambda: open("/proc/self/" + n, "wb", 0).write(value))
for p in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
          "/proc/sysrq-trigger", "/proc/acpi", "/proc/scsi", "/proc/fs", "/proc/bus", "/proc/irq", "/proc/driver",
          "/sys/fs/cgroup", "/sys/kernel/uevent_helper", "/dev/cgroup"):
    if os.path.lexists(p):
        got(p)

#: no class of time that others feel
for policy, prio in ((1, 1), (2, 1), (0x40000001, 1)):
    refused(policy, os.sched_setscheduler, 0, policy, os.sched_param(prio))
deadline = ctypes.create_string_buffer(struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7))
closed("deadline", 314, 0, deadline, 0)
closed("ioprio", 251, 1, 0, (1 << 13) | 0)
for n in (-1, -20):
    try:
        os.setpriority(os.PRIO_PROCESS, 0, n)
    except OSError:
        continue
    got("priority", os.getpriority(os.PRIO_PROCESS, 0))

#: no memory that cannot be moved
import mmap
closed("mlockall", 151, 3)
m = mmap.mmap(-1, 1 << 20)
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
closed("mlock", 149, at, 1 << 20)
if FILTER:
    closed("huge pages", 9, 0, 2 << 20, 3, 0x40022, -1 & 0xffffffff, 0)
    closed("huge pages of 1 GB", 9, 0, 1 << 30, 3, 0x40022 | 30 << 26, -1 & 0xffffffff, 0)
    call("memfd of huge pages", 319, text("x"), 4)

#: what others do is not told [filter]
call("inotify", 253)
call("inotify1", 294, 0)
call("fanotify", 300, 0, 0)
call("dnotify", 72, os.open("/usr/bin", os.O_RDONLY), 1026, 0x8000003f)
call("flush of the host's disk", 306, os.open("/usr", os.O_RDONLY))
refused("lease", __import__("fcntl").fcntl, os.open(sys.executable, os.O_RDONLY), 1024, 0)

#: the host's disk is flushed for nobody, nor read past its memory [filter]
import fcntl
for name, nr, args in (("fsync", 74, (9999,)), ("fdatasync", 75, (9999,)), ("sync_file_range", 277, (9999, 0, 0, 2)),
                       ("msync", 26, (0, 4096, 4)), ("fadvise", 221, (9999, 0, 0, 4))):
    if libc.syscall(nr, *args) != 0:  # the descriptor was looked at
        got(name)
refused("a file", os.open, sys.executable, os.O_RDONLY | os.O_DIRECT)
refused("an open file", fcntl.fcntl, os.open(sys.executable, os.O_RDONLY), fcntl.F_SETFL, os.O_DIRECT)
call("openat2", 437, -100, text("/usr"), ctypes.create_string_buffer(struct.pack("3Q", os.O_DIRECT, 0, 0)), 24)

#: signals by way of a descriptor reach nobody
import fcntl
a, b = socket.socketpair()
for owner in (9999, -9999, -1, 1):
    try:
        fcntl.fcntl(a, 8, owner)
        fcntl.fcntl(a, 10, int(signal.SIGKILL))
        fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    except OSError:
        continue
if FILTER:
    refused("an owner", fcntl.fcntl, a, 8, 1)
signal.signal(signal.SIGIO, signal.SIG_IGN)
b.send(b"x")
None

#: calls with any arguments change nothing for others [filter]
import random
fds = [os.open("/dev/null", os.O_RDWR), *socket.socketpair()]
left_alone = {0, 3, 15, 34, 35, 60, 61, 62, 23, 7, 57, 58, 56, 129, 130, 128, 200, 202, 230, 231, 232, 234, 247,
              270, 271, 281, 297, 424, 436, 435, 441, 449, 455, 456, 59, 322, 109, 112, 127, 14, 13, 293, 22, 101}
for seed in range(40):
    pid = os.fork()
    if pid == 0:
        os.close(3)  # what comes there from a child is no answer of the interpreter
        random.seed(seed)
        values = (0, 1, 3, 2**31, 2**32 - 1, 2**64 - 1, 4096, at_hand := ctypes.addressof(ctypes.create_string_buffer(64)))
        for i in range(300):
            nr = random.randrange(470)
            if nr not in left_alone:
                libc.syscall(nr, *[ctypes.c_ulong(random.choice(values)) for k in range(6)])
        os._exit(0)
    until = time.monotonic() + 0.3
    while time.monotonic() < until and os.waitpid(pid, os.WNOHANG)[0] == 0:
        time.sleep(0.002)
    if time.monotonic() >= until:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
if os.getuid() != 1000 or os.uname().nodename != "sandbox" or os.getppid() != 1:
    got("changed")

#: a user namespace of its own opens nothing [bare]
nested = r"""
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
uid = os.getuid()
if libc.unshare(0x10000000 | 0x20000) != 0:
    sys.exit(0)
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write("0 %d 1" % uid)
def refused(name, r):
    if r == 0:
        print("REACHED", name)
c = lambda s: None if s is None else s.encode()
def mount(name, source, target, kind, flags):
    refused(name, libc.mount(c(source), c(target), c(kind), flags, None))
refused("umount of usr", libc.umount2(b"/usr", 2))
refused("umount of the root", libc.umount2(b"/", 2))
refused("umount of proc", libc.umount2(b"/proc", 2))
mount("usr writable", None, "/usr", None, 32)
mount("usr writable, a bind", None, "/usr", None, 32 | 4096)
mount("the root writable", None, "/", None, 32)
for kind in ("sysfs", "cgroup2", "ext4", "fuse", "securityfs", "debugfs", "devtmpfs", "configfs", "bpf", "nfs"):
    mount(kind, kind, "/tmp", kind, 0)
refused("device", libc.mknod(b"/work/d", 0o20666, 0x101))
for p in ("/usr/x", "/etc/x", "/x"):
    try:
        open(p, "w")
        print("REACHED", p)
    except OSError:
        pass
refused("sethostname", libc.sethostname(b"evil", 4))
refused("a module", libc.syscall(175, 0, 0, b""))
refused("reboot", libc.syscall(169, 0xfee1dead, 672274793, 0, 0))
refused("swap", libc.syscall(168, b"/work"))
refused("time", libc.syscall(227, 0, ctypes.create_string_buffer(16)))
if libc.unshare(0x40000000) == 0:
    names = [l.split(":")[0].strip() for l in open("/proc/self/net/dev") if ":" in l]
    if set(names) - {"lo"}:
        print("REACHED", names)
for p in ("/etc/shadow", "/var", "/home", "HOST_FILE"):
    if os.path.lexists(p):
        print("REACHED", p)
""".replace("HOST_FILE", HOST_FILE)
p = subprocess.run([sys.executable, "-c", nested], capture_output=True, text=True)
if p.stdout or p.returncode:
    got(p.stdout, p.stderr)

#: no route leads anywhere [bare]
for family, address in ((socket.AF_INET, ("127.0.0.1", 22)), (socket.AF_INET, ("1.1.1.1", 53)),
                        (socket.AF_INET6, ("::1", 22)), (socket.AF_INET6, ("2606:4700:4700::1111", 53))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            s = socket.socket(family, kind)
        except OSError:
            continue
        s.settimeout(2)
        refused("connect", s.connect, address)
for kind in (socket.SOCK_RAW, 10):
    for family in (socket.AF_INET, socket.AF_INET6, 17):
        refused("raw", socket.socket, family, kind)
try:
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
except OSError:
    sys.exit(0)
s.bind((0, 0))
s.send(struct.pack("=IHHIIBxHiII", 32, 16, 5, 1, 0, 0, 0, 1, 1, 1))
if struct.unpack_from("=i", s.recv(4096), 16)[0] == 0:
    got("lo is up")
