# Code that tries to reach something outside of its session. Every piece starts with the prelude in a
# session of its own and prints what it reached; nothing printed means that the wall held.
# FILTER, LANDLOCK and HOST_FILE come from escape.c. [filter]: only with the system call filter; [bare]: only
# without, when the namespaces stand alone.
#: prelude
import ctypes, errno, os, resource, signal, socket, stat, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
CLOSED = (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT, errno.ENOTSUP, errno.ENOTTY)

def got(*a):
    print("REACHED", *a)

def refused(name, f, *a):
    try:
        r = f(*a)
    except (OSError, ValueError):
        return
    got(name, r)

def call(name, nr, *a):
    """A system call that must be closed before the kernel looks at its arguments."""
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_ulong(x) if isinstance(x, int) else x for x in a])
    if r != -1:
        got(name, r)
    elif ctypes.get_errno() not in CLOSED:
        got(name, "the kernel answered", errno.errorcode[ctypes.get_errno()])

def closed(name, nr, *a):
    """A system call that must fail, wherever it does."""
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_ulong(x) if isinstance(x, int) else x for x in a])
    if r != -1:
        got(name, r)

def text(s):
    return ctypes.c_char_p(s.encode())

#: host files are not there
for p in ["/etc/shadow", "/etc/machine-id", "/root", "/home", "/var", "/run", "/sys", "/boot", "/etc/ssh",
          "/lost+found", "/media", "/srv", "/var/run/docker.sock", "/dev/sda", "/dev/vda", "/etc/cron.d"]:
    if os.path.lexists(p):
        got(p)
if len(open("/etc/passwd").read().splitlines()) != 2:
    got("passwd")

#: the root holds what it should
extra = set(os.listdir("/")) - {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "dev", "proc",
                                "tmp", "work", "mnt", "init"}
if extra:
    got(extra)
extra = set(os.listdir("/dev")) - {"null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout",
                                   "stderr", "shm"}
if extra:
    got(extra)

#: only our own mounts are there, and read-only where they should be
for l in open("/proc/self/mountinfo"):
    f = l.split()
    point, options = f[4], f[5].split(",")
    if point not in ("/", "/usr", "/proc", "/work", "/tmp") and not point.startswith(("/dev/", "/etc/", "/usr/")):
        got(l)
    if point not in ("/proc", "/work", "/tmp", "/dev/shm") and not point.startswith("/dev/") and "ro" not in options:
        got("writable", l)
    if "nosuid" not in options:
        got("suid", l)

#: dots and links lead nowhere
here = "/work"
for i in range(40):
    here += "/.."
if sorted(os.listdir(here)) != sorted(os.listdir("/")):
    got("above the root")
for target in ("/proc/1/root", "/proc/1/cwd", "/proc/self/root/../../etc/shadow"):
    os.symlink(target, "l")
    refused(target, os.listdir, "l")
    refused(target, lambda: open("l").read())
    os.unlink("l")

#: no secret of any environment
if "hunter2" in repr(os.environ):
    got("environ")
extra = set(os.environ) - {"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "OUTPUT_DIR", "XDG_CACHE_HOME",
                           "XDG_CONFIG_HOME", "MPLBACKEND", "MPLCONFIGDIR", "PYTHONIOENCODING", "PYTHONUTF8",
                           "PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "LC_CTYPE"}
if extra:
    got(extra)
for p in os.listdir("/proc"):
    if p.isdigit():
        try:
            b = open("/proc/%s/environ" % p, "rb").read()
        except OSError:
            continue
        if b"hunter2" in b:
            got(p)

#: no descriptor is inherited
for f in os.listdir("/proc/self/fd"):
    if int(f) > 3:
        try:
            got(f, os.readlink("/proc/self/fd/" + f))
        except OSError:
            pass

#: no memory is shared with anybody
for l in open("/proc/self/maps"):
    f = l.split()
    if f[1][3] == "s" and ("w" in f[1] or not f[-1].startswith("/usr/")):
        got(l)

#: no file of another is there
for path in ("/tmp", "/dev/shm", "/work"):
    extra = set(os.listdir(path)) - {"outputs"}
    if extra:
        got(path, extra)

#: the zygote cannot be reached
if os.path.exists("/dev/shm/otari-zygote.so"):
    got("its library")
if os.getppid() != 1:
    got("its process", os.getppid())
for n in (0, 1, 2, 3):
    s = os.fstat(n).st_mode
    if not (stat.S_ISCHR(s) if n == 0 else stat.S_ISFIFO(s) if n < 3 else stat.S_ISSOCK(s)):
        got("descriptor", n)
a = socket.socket(fileno=os.dup(3))
uid = struct.unpack("3i", a.getsockopt(socket.SOL_SOCKET, 17, 12))[1]
if uid not in (1000, 65534):
    got("peer", uid)
a.close()
if os.getsid(0) != os.getpid() or os.getpgid(0) != os.getpid():
    got("a session of processes that is not its own")

#: no other process is seen
pids = {int(p) for p in os.listdir("/proc") if p.isdigit()}
if pids - {1, os.getpid()}:
    got(pids)
for n in ("mem", "maps", "environ", "exe", "syscall", "stack", "auxv"):
    refused(n, lambda: open("/proc/1/" + n, "rb").read(1))
for n in ("fd", "cwd", "root", "ns", "task/1/fd"):
    refused(n, os.listdir, "/proc/1/" + n)
if any(not l.rstrip().endswith(":/") for l in open("/proc/self/cgroup")):
    got("cgroup path")

#: signals reach nobody outside
for pid in range(1, 400):
    if pid == os.getpid():
        continue
    for sig in (0, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGSEGV):
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            break
        if pid != 1:
            got(pid)
try:
    os.kill(os.getppid(), signal.SIGKILL)
except OSError:
    pass

#: no socket of any family [filter]
for fam in range(0, 46):
    for typ in (1, 2, 3, 5):
        refused("socket %d %d" % (fam, typ), socket.socket, fam, typ)
a, b = socket.socketpair()
refused("connect", a.connect, "\0x")
refused("bind", a.bind, "/work/s")
refused("listen", a.listen)
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for p in ("/run/x", "\0x", "/dev/log", "/run/systemd/notify"):
    refused("sendto", a.sendto, b"x", p)
refused("netlink pair", socket.socketpair, socket.AF_NETLINK)
try:
    names = [l.split(":")[0].strip() for l in open("/proc/self/net/dev") if ":" in l]
except OSError:
    names = []
if set(names) - {"lo"}:
    got(names)

#: no network by name or by tool
refused("dns", socket.create_connection, ("example.com", 80), 1)
refused("lo", socket.create_connection, ("127.0.0.1", 22), 1)
for cmd in (["ping", "-c1", "-W1", "127.0.0.1"], ["bash", "-c", "echo > /dev/tcp/127.0.0.1/22"]):
    try:
        r = subprocess.run(cmd, capture_output=True, timeout=5)
    except OSError:
        continue
    if r.returncode == 0:
        got(cmd)

#: no mount, no chroot, no namespace [filter]
call("mount", 165, ctypes.c_char_p(b"none"), ctypes.c_char_p(b"/work"), ctypes.c_char_p(b"tmpfs"), 0, 0)
call("umount", 166, ctypes.c_char_p(b"/work"), 2)
call("pivot_root", 155, ctypes.c_char_p(b"/work"), ctypes.c_char_p(b"/work"))
call("chroot", 161, ctypes.c_char_p(b"/work"))
for nr, name in ((430, "fsopen"), (428, "open_tree"), (429, "move_mount"), (442, "mount_setattr"),
                 (431, "fsconfig"), (432, "fsmount"), (433, "fspick"), (457, "statmount"), (458, "listmount")):
    call(name, nr, 0, 0, 0, 0, 0)
for bit, name in ((0x10000000, "user"), (0x20000, "mnt"), (0x20000000, "pid"), (0x40000000, "net"),
                  (0x8000000, "ipc"), (0x4000000, "uts"), (0x2000000, "cgroup"), (0x80, "time")):
    call("unshare " + name, 272, bit)
    if bit != 0x80:
        call("clone " + name, 56, bit | 17, 0, 0, 0, 0)
        call("clone high " + name, 56, (1 << 32) | bit | 17, 0, 0, 0, 0)
call("clone3", 435, 0, 0)
fd = os.open("/proc/self/ns/user", os.O_RDONLY)
call("setns", 308, fd, 0)

#: no system call that is a door [filter]
for nr, name in ((101, "ptrace"), (310, "process_vm_readv"), (311, "process_vm_writev"), (250, "keyctl"),
                 (248, "add_key"), (249, "request_key"), (321, "bpf"), (298, "perf_event_open"),
                 (323, "userfaultfd"), (425, "io_uring_setup"), (426, "io_uring_enter"), (427, "io_uring_register"),
                 (312, "kcmp"), (175, "init_module"), (313, "finit_module"), (176, "delete_module"),
                 (246, "kexec_load"), (320, "kexec_file_load"), (103, "syslog"), (135, "personality"),
                 (304, "open_by_handle_at"), (303, "name_to_handle_at"), (300, "fanotify_init"), (172, "iopl"),
                 (173, "ioperm"), (154, "modify_ldt"), (179, "quotactl"), (447, "memfd_secret"), (319, "memfd_create"),
                 (438, "pidfd_getfd"), (440, "process_madvise"), (169, "reboot"), (170, "sethostname"),
                 (227, "clock_settime"), (159, "adjtimex"), (167, "swapon"), (163, "acct"), (153, "vhangup"),
                 (278, "vmsplice"), (275, "splice"), (276, "tee"), (126, "capset"), (317, "seccomp"),
                 (29, "shmget"), (68, "msgget"), (64, "semget"), (240, "mq_open"), (206, "io_setup"),
                 (237, "mbind"), (256, "migrate_pages"), (279, "move_pages"), (162, "sync"), (434 + 30, "?464"),
                 (600, "600"), (0x40000000 - 1, "high")):
    call(name, nr, 0, 0, 0, 0, 0, 0)

#: arguments are compared as the kernel takes them [filter]
call("socketpair inet", 53, (1 << 32) | 2, 1, 0, ctypes.byref((ctypes.c_int * 2)()))
call("TIOCSTI", 16, 0, 0x5412, ctypes.c_char_p(b"x"))
call("TIOCSTI high", 16, 0, (1 << 32) | 0x5412, ctypes.c_char_p(b"x"))
call("prlimit of init", 302, 1, 7, 0, 0)
call("setpriority of the user", 141, 2, 0, 19)
call("setpriority of init", 141, 0, 1, 19)
call("sched_setscheduler of init", 144, 1, 5, ctypes.byref(ctypes.c_int(0)))
call("sched_setattr of init", 314, 1, 0, 0)
os.nice(1)
call("prctl subreaper", 157, 36, 1, 0, 0, 0)
call("prctl seccomp", 157, 22, 2, 0, 0, 0)
call("prctl mm", 157, 35, 1, 0, 0, 0)

#: no privilege
status = dict(l.split(":\t", 1) for l in open("/proc/self/status") if ":\t" in l)
for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    if int(status[c], 16) != 0:
        got(c, status[c])
if status["NoNewPrivs"].strip() != "1" or FILTER and status["Seccomp"].strip() != "2":
    got("no filter")
if open("/proc/self/uid_map").read().split()[::2] != ["1000", "1"]:
    got(open("/proc/self/uid_map").read())
refused("setuid", os.setuid, 0)
refused("setgroups", os.setgroups, [0])
refused("chown", os.chown, "/work", 0, 0)
refused("nice", os.nice, -5)
refused("fifo", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))
for n in ("NOFILE", "NPROC", "AS", "FSIZE", "CPU"):
    k = getattr(resource, "RLIMIT_" + n)
    soft, hard = resource.getrlimit(k)
    if hard == resource.RLIM_INFINITY:
        got(n)
    refused(n, resource.setrlimit, k, (soft, hard + 1))
for path in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/newgrp", "/usr/bin/sudo"):
    if os.path.exists(path):
        r = subprocess.run([path, "--version"], capture_output=True, stdin=subprocess.DEVNULL)
open("suid.c", "w").write("")
os.chmod("suid.c", 0o6755)

#: nothing outside the workspace can be written
for p in ("/x", "/usr/x", "/etc/x", "/dev/x", "/mnt/x", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
          "/etc/passwd", "/usr/bin/python3", "/dev/mem", "/proc/self/uid_map", "/proc/1/oom_score_adj"):
    refused(p, lambda: open(p, "ab").write(b"x"))
refused("rename", os.rename, "/etc/hosts", "/work/hosts")
refused("unlink", os.unlink, "/etc/hosts")
refused("link", os.link, "/usr/bin/env", "/work/env")
refused("mkdir", os.mkdir, "/y")
if FILTER:
    refused("xattr", os.setxattr, "/work", "user.a", b"b")

#: no device node
refused("mknod b", os.mknod, "/work/b", stat.S_IFBLK | 0o600, os.makedev(254, 0))
refused("mknod c", os.mknod, "/work/c", stat.S_IFCHR | 0o600, os.makedev(1, 1))
os.mkfifo("/work/f")
os.unlink("/work/f")

#: the kernel tells little
for p in ("/proc/kallsyms", "/proc/kcore", "/proc/cmdline", "/proc/modules", "/proc/config.gz", "/proc/version",
          "/proc/meminfo", "/proc/sys", "/proc/keys", "/proc/mounts/../kmsg", "/proc/sched_debug"):
    if os.path.exists(p):
        got(p)
if os.uname().nodename != "sandbox":
    got(os.uname().nodename)
