#include "worker/http/mime.h"

#include <stddef.h>

#include "base/err.h"

static const struct {
	struct str ext, type;
} types[] = {
    {STR_INIT("csv"), STR_INIT("text/csv")},
    {STR_INIT("txt"), STR_INIT("text/plain")},
    {STR_INIT("text"), STR_INIT("text/plain")},
    {STR_INIT("log"), STR_INIT("text/plain")},
    {STR_INIT("md"), STR_INIT("text/markdown")},
    {STR_INIT("markdown"), STR_INIT("text/markdown")},
    {STR_INIT("tsv"), STR_INIT("text/tab-separated-values")},
    {STR_INIT("html"), STR_INIT("text/html")},
    {STR_INIT("htm"), STR_INIT("text/html")},
    {STR_INIT("css"), STR_INIT("text/css")},
    {STR_INIT("xml"), STR_INIT("text/xml")},
    {STR_INIT("py"), STR_INIT("text/x-python")},
    {STR_INIT("c"), STR_INIT("text/x-c")},
    {STR_INIT("h"), STR_INIT("text/x-c")},
    {STR_INIT("cpp"), STR_INIT("text/x-c++")},
    {STR_INIT("java"), STR_INIT("text/x-java")},
    {STR_INIT("rb"), STR_INIT("text/x-ruby")},
    {STR_INIT("php"), STR_INIT("text/x-php")},
    {STR_INIT("tex"), STR_INIT("text/x-tex")},
    {STR_INIT("js"), STR_INIT("text/javascript")},
    {STR_INIT("mjs"), STR_INIT("text/javascript")},
    {STR_INIT("ts"), STR_INIT("application/typescript")},
    {STR_INIT("sh"), STR_INIT("application/x-sh")},
    {STR_INIT("json"), STR_INIT("application/json")},
    {STR_INIT("jsonl"), STR_INIT("application/jsonl")},
    {STR_INIT("ndjson"), STR_INIT("application/x-ndjson")},
    {STR_INIT("ipynb"), STR_INIT("application/x-ipynb+json")},
    {STR_INIT("yaml"), STR_INIT("application/yaml")},
    {STR_INIT("yml"), STR_INIT("application/yaml")},
    {STR_INIT("toml"), STR_INIT("application/toml")},
    {STR_INIT("sql"), STR_INIT("application/sql")},
    {STR_INIT("rtf"), STR_INIT("application/rtf")},
    {STR_INIT("pdf"), STR_INIT("application/pdf")},
    {STR_INIT("doc"), STR_INIT("application/msword")},
    {STR_INIT("xls"), STR_INIT("application/vnd.ms-excel")},
    {STR_INIT("ppt"), STR_INIT("application/vnd.ms-powerpoint")},
    {STR_INIT("docx"),
	STR_INIT("application/vnd.openxmlformats-officedocument.wordprocessingml.document")},
    {STR_INIT("xlsx"),
	STR_INIT("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")},
    {STR_INIT("pptx"),
	STR_INIT("application/vnd.openxmlformats-officedocument.presentationml.presentation")},
    {STR_INIT("odt"), STR_INIT("application/vnd.oasis.opendocument.text")},
    {STR_INIT("ods"), STR_INIT("application/vnd.oasis.opendocument.spreadsheet")},
    {STR_INIT("odp"), STR_INIT("application/vnd.oasis.opendocument.presentation")},
    {STR_INIT("epub"), STR_INIT("application/epub+zip")},
    {STR_INIT("parquet"), STR_INIT("application/vnd.apache.parquet")},
    {STR_INIT("sqlite"), STR_INIT("application/vnd.sqlite3")},
    {STR_INIT("zip"), STR_INIT("application/zip")},
    {STR_INIT("tar"), STR_INIT("application/x-tar")},
    {STR_INIT("gz"), STR_INIT("application/gzip")},
    {STR_INIT("tgz"), STR_INIT("application/gzip")},
    {STR_INIT("bz2"), STR_INIT("application/x-bzip2")},
    {STR_INIT("xz"), STR_INIT("application/x-xz")},
    {STR_INIT("7z"), STR_INIT("application/x-7z-compressed")},
    {STR_INIT("png"), STR_INIT("image/png")},
    {STR_INIT("jpg"), STR_INIT("image/jpeg")},
    {STR_INIT("jpeg"), STR_INIT("image/jpeg")},
    {STR_INIT("gif"), STR_INIT("image/gif")},
    {STR_INIT("webp"), STR_INIT("image/webp")},
    {STR_INIT("bmp"), STR_INIT("image/bmp")},
    {STR_INIT("tif"), STR_INIT("image/tiff")},
    {STR_INIT("tiff"), STR_INIT("image/tiff")},
    {STR_INIT("ico"), STR_INIT("image/vnd.microsoft.icon")},
    {STR_INIT("heic"), STR_INIT("image/heic")},
    {STR_INIT("avif"), STR_INIT("image/avif")},
    {STR_INIT("svg"), STR_INIT("image/svg+xml")},
    {STR_INIT("mp3"), STR_INIT("audio/mpeg")},
    {STR_INIT("wav"), STR_INIT("audio/x-wav")},
    {STR_INIT("m4a"), STR_INIT("audio/mp4")},
    {STR_INIT("ogg"), STR_INIT("audio/ogg")},
    {STR_INIT("flac"), STR_INIT("audio/flac")},
    {STR_INIT("mp4"), STR_INIT("video/mp4")},
    {STR_INIT("mpeg"), STR_INIT("video/mpeg")},
    {STR_INIT("mov"), STR_INIT("video/quicktime")},
    {STR_INIT("webm"), STR_INIT("video/webm")},
};

struct str
mime_of_name(struct str filename)
{
	size_t dot = str_rchr(filename, '.');
	struct str ext = dot == SIZE_MAX ? STR("") : str_from(filename, dot + 1);
	for (size_t i = 0; ext.len > 0 && i < ARRAY_LEN(types); i++)
		if (str_eq_nocase(ext, types[i].ext))
			return types[i].type;
	return STR("application/octet-stream");
}
