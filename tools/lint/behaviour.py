"""behaviour.py LIST FILE... - the numbers of LIST are complete; its tests are Test(suite, name) in the files"""
import re
import sys

NUMBERS = set(range(1, 96)) | {105, 122, 123}


def main():
    path, bad, seen = sys.argv[1], 0, set()
    tests = set()
    for source in sys.argv[2:]:
        with open(source, encoding="utf-8") as f:
            tests |= set(re.findall(r"^Test\(\s*(\w+),\s*(\w+)", f.read(), re.M))
    with open(path, encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            row = re.match(r"\| ([A-Z]?\d+) \|", line)
            if not row:
                continue
            seen.add(row.group(1))
            named = re.findall(r"`(\w+)/(\w+)`", line)
            if not named:
                print(f"{path}:{n}: {row.group(1)} has no test")
                bad += 1
            for test in named:
                if test not in tests:
                    print(f"{path}:{n}: there is no test {test[0]}/{test[1]}")
                    bad += 1
    for number in sorted(NUMBERS):
        if str(number) not in seen:
            print(f"{path}: {number} is not there")
            bad += 1
    sys.exit(bad > 0)


main()
