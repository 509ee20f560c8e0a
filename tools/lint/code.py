"""code.py RULE FILE... - the rules that need C's comments and strings taken out first

layers   an include points down the list of folders, or stays in its folder
headers  guards are named after the path; a .c file includes its own header first
banned   functions that are not used, and those that only named files may use
"""
import os
import re
import sys

# From the bottom up; an include may point to an earlier folder of the list.
FOLDERS = ["base", "ipc", "conf", "schema", "storage", "sandbox", "sweeper", "worker", "builder", "master"]
TOPS = {"tests", "tools"}  # may include anything; nobody includes them
# Inside worker/: those of one line know nothing of each other.
WORKER = [{"http", "dialect"}, {"upstream", "code"}, {"turn"}, {"api", "dashboard"}]

EVERYWHERE = "strcpy strcat sprintf vsprintf strtok gets atoi atol strncpy strncat alloca system popen rand"
HEAP = "malloc calloc realloc strdup strndup"
RAW_FD = "socket socketpair pipe pipe2 open openat creat accept accept4 dup dup2 dup3 memfd_create"
BLOCKING = "getaddrinfo gethostbyname sleep usleep nanosleep"
FORK = "fork vfork exit"
# (functions, paths where they are allowed, what to use instead)
BANNED = [
    (EVERYWHERE, (), "buf_printf, str_copy, str_u64, event signals, id_*"),
    ("signal", ("tests/",), "the loop's signal events, sigaction"),
    (HEAP, ("base/", "tests/fuzz/", "sandbox/init/", "sandbox/zygote/"), "mem_*, an arena or a buf"),
    (RAW_FD, ("base/fd.c", "master/", "ipc/role", "ipc/control_client", "sandbox/", "worker/http/server.c", "tests/", "tools/"), "base/fd.h"),
    (BLOCKING, ("tests/", "tools/", "sandbox/init/", "sandbox/zygote/"), "the event loop"),
    (FORK, ("master/", "sandbox/", "ipc/role", "base/check.c", "tests/", "tools/"), "a role of its own; return"),
    ("spawner_main_without", ("sandbox/spawner/spawner", "tests/probes/"), "spawner_main: every wall stands"),
]


def strip(text):
    """Blanks comments and string contents; line numbers stay."""
    def blank(m):
        s = m.group(0)
        if s[0] == "/":
            return re.sub(r"[^\n]", " ", s)
        return s[0] + " " * (len(s) - 2) + s[-1] if "\n" not in s else s
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def includes(text):
    code = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)
    for n, line in enumerate(code.split("\n"), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if m:
            yield n, m.group(1)


def worker_rank(path):
    parts = path.split("/")
    if len(parts) < 3:
        return None, None
    for rank, names in enumerate(WORKER):
        if parts[1] in names:
            return rank, parts[1]
    return None, parts[1]


def layers(path, text):
    own = path.split("/")[0]
    for n, inc in includes(text):
        to = inc.split("/")[0]
        if "/" not in inc or not os.path.exists(inc):
            yield n, f'"{inc}": write the path from the top folder'
            continue
        if own in TOPS:
            continue
        if own not in FOLDERS or to not in FOLDERS:
            yield n, f'"{inc}": no folder of the list'
        elif FOLDERS.index(to) > FOLDERS.index(own):
            yield n, f'"{inc}": {own}/ may not include {to}/'
        elif own == to == "worker":
            rank, sub = worker_rank(path)
            to_rank, to_sub = worker_rank(inc)
            if rank is not None and to_rank is not None and sub != to_sub and to_rank >= rank:
                yield n, f'"{inc}": worker/{sub}/ may not include worker/{to_sub}/'


def headers(path, text):
    if path.endswith(".h"):
        guard = "OTARI_" + re.sub(r"[^A-Z0-9]", "_", path[:-2].upper()) + "_H"
        short = "OTARI_" + re.sub(r"[^A-Z0-9]", "_", "_".join(path[:-2].upper().split("/")[-2:])) + "_H"
        m = re.search(r"^#ifndef (\w+)\n#define (\w+)", text, re.M)
        if not m or m.group(1) != m.group(2) or m.group(1) not in (guard, short):
            yield 1, f"the guard is to be {guard}" + (f" or {short}" if short != guard else "")
        if not text.startswith("/*"):
            yield 1, "begins with a comment: purpose, process, ownership, limits"
    else:
        own = path[:-2] + ".h"
        first = next(includes(text), None)
        if os.path.exists(own) and (first is None or first[1] != own):
            yield 1, f'its own header "{own}" comes first'


def banned(path, text):
    code = strip(text)
    for names, allowed, instead in BANNED:
        if path.startswith(allowed):
            continue
        for m in re.finditer(r"(?<![\w.>])(" + "|".join(names.split()) + r")\s*\(", code):
            line = code.count("\n", 0, m.start()) + 1
            start = code.rfind("\n", 0, m.start()) + 1
            if code[start:m.start()].lstrip().startswith("#"):
                continue
            yield line, f"{m.group(1)}() is not used here: {instead}"


def main():
    rule = {"layers": layers, "headers": headers, "banned": banned}[sys.argv[1]]
    bad = 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for line, what in rule(path, text):
            print(f"{path}:{line}: {what}")
            bad += 1
    sys.exit(bad > 0)


main()
