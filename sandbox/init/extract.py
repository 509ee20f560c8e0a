# extract.py - the text of a document whose format needs no program: KIND FILE, text on stdout
#
# Kinds: docx, pptx, xlsx, odf, html. otari-init runs it inside a session, behind its limits. What
# is not such a document is one line on stderr and status 1.
import re
import sys
import xml.parsers.expat
import zipfile

LIMIT = 256 << 20  # bytes of one document, unpacked
out = sys.stdout
left = LIMIT


class Refused(Exception):
    pass


def parse(archive, name, start, end, text):
    """Streams a part through handlers that get names without their namespace."""
    global left

    def refuse(*_):
        raise Refused("it declares a document type")

    p = xml.parsers.expat.ParserCreate(namespace_separator=" ")
    p.buffer_text = True
    p.StartDoctypeDeclHandler = refuse
    p.StartElementHandler = lambda n, a: start(
        n.rpartition(" ")[2], {k.rpartition(" ")[2]: v for k, v in a.items()}
    )
    p.EndElementHandler = lambda n: end(n.rpartition(" ")[2])
    p.CharacterDataHandler = text
    if archive.getinfo(name).file_size > left:  # as it claims; what comes is counted all the same
        raise Refused("it is too large when unpacked")
    with archive.open(name) as f:
        while True:
            chunk = f.read(65536)
            left -= len(chunk)
            if left < 0:
                raise Refused("it is too large when unpacked")
            p.Parse(chunk, not chunk)
            if not chunk:
                return


def numbered(archive, pattern):
    found = [(int(m.group(1)), m.group(0)) for m in map(re.compile(pattern).fullmatch, archive.namelist()) if m]
    return [name for _, name in sorted(found)]


def flow(archive, name, text_tags, breaks):
    """Text of some elements, and what the end of others adds to it."""
    depth = 0

    def start(tag, attributes):
        nonlocal depth
        depth += tag in text_tags
        if tag == "s" and breaks is ODF:  # blanks
            out.write(" " * min(int(attributes.get("c", "1")), 1000))

    def end(tag):
        nonlocal depth
        depth -= tag in text_tags
        out.write(breaks.get(tag, ""))

    parse(archive, name, start, end, lambda s: out.write(s) if depth > 0 else None)


WORD = {"p": "\n", "br": "\n", "cr": "\n", "tab": "\t", "tc": "\t", "tr": "\n"}
ODF = {"p": "\n", "h": "\n", "line-break": "\n", "tab": "\t", "table-cell": "\t", "table-row": "\n"}


def docx(archive):
    flow(archive, "word/document.xml", {"t"}, WORD)
    for part in ("word/footnotes.xml", "word/endnotes.xml"):
        if part in archive.namelist():
            flow(archive, part, {"t"}, WORD)


def pptx(archive):
    for number, name in enumerate(numbered(archive, r"ppt/slides/slide(\d{1,6})\.xml"), 1):
        out.write("[Slide %d]\n" % number)
        flow(archive, name, {"t"}, {"p": "\n", "br": "\n", "tc": "\t", "tr": "\n"})


def odf(archive):
    flow(archive, "content.xml", {"p", "h"}, ODF)


def shared_strings(archive):
    strings, inside = [], False

    def start(tag, _):
        nonlocal inside
        if tag == "si":
            strings.append("")
        inside = tag == "t"

    def end(tag):
        nonlocal inside
        inside = inside and tag != "t"

    def text(s):
        if inside and strings:
            strings[-1] += s

    if "xl/sharedStrings.xml" in archive.namelist():
        parse(archive, "xl/sharedStrings.xml", start, end, text)
    return strings


def sheets(archive):
    """(title, part) in the order of the workbook."""
    targets, found = {}, []
    parse(
        archive,
        "xl/_rels/workbook.xml.rels",
        lambda t, a: targets.update({a.get("Id"): a.get("Target", "")}) if t == "Relationship" else None,
        lambda t: None,
        lambda s: None,
    )
    parse(
        archive,
        "xl/workbook.xml",
        lambda t, a: found.append((a.get("name", ""), targets.get(a.get("id"), ""))) if t == "sheet" else None,
        lambda t: None,
        lambda s: None,
    )
    return [(title, t.lstrip("/") if t.startswith("/") else "xl/" + t) for title, t in found]


def column(reference, last):
    n = 0
    for c in reference:
        if not "A" <= c <= "Z":
            break
        n = n * 26 + ord(c) - 64
    return n if last < n <= 16384 else last + 1


def xlsx(archive):
    strings = shared_strings(archive)
    for title, part in sheets(archive):
        at = last = 0
        kind, value, inside = "", "", False

        def start(tag, a):
            nonlocal at, kind, value, inside
            if tag == "c":
                at, kind, value = column(a.get("r", ""), at), a.get("t", ""), ""
            inside = tag in ("v", "t")

        def end(tag):
            nonlocal at, last, inside
            inside = False
            if tag == "c" and value:
                index = int(value) if kind == "s" and value.isascii() and value.isdigit() else -1
                out.write("\t" * max(at - max(last, 1), 0))
                out.write(strings[index] if 0 <= index < len(strings) else value)
                last = at
            elif tag == "row":
                out.write("\n")
                at = last = 0

        def text(s):
            nonlocal value
            if inside:
                value += s

        out.write("[Sheet %s]\n" % title)
        parse(archive, part, start, end, text)


def html(path):
    from html.parser import HTMLParser

    blocks = set("p div br li tr h1 h2 h3 h4 h5 h6 ul ol table section article pre title".split())
    hidden = {"script", "style", "noscript", "template"}

    class Reader(HTMLParser):
        inside = 0

        def handle_starttag(self, tag, attrs):
            self.inside += tag in hidden
            if tag in blocks:
                out.write("\n")

        def handle_endtag(self, tag):
            self.inside -= tag in hidden and self.inside > 0
            out.write("\n" if tag in blocks else "\t" if tag in ("td", "th") else "")

        def handle_data(self, data):
            if not self.inside:
                out.write(re.sub(r"\s+", " ", data))

    reader = Reader()
    with open(path, encoding="utf-8", errors="replace") as f:
        while chunk := f.read(65536):
            reader.feed(chunk)
    reader.close()
    out.write("\n")


def main(kind, path):
    out.reconfigure(encoding="utf-8", errors="replace")
    try:
        if kind == "html":
            html(path)
        else:
            with zipfile.ZipFile(path) as archive:
                {"docx": docx, "pptx": pptx, "xlsx": xlsx, "odf": odf}[kind](archive)
        out.flush()
    except (Refused, OSError, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError) as e:
        return "the document cannot be read: %s" % e
    except (zipfile.BadZipFile, xml.parsers.expat.ExpatError, MemoryError) as e:
        return "the document cannot be read: %s" % e
    except Exception as e:  # zlib's and lzma's own
        return "the document cannot be read: %s" % type(e).__name__


sys.exit(main(sys.argv[1], sys.argv[2]))
