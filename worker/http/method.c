#include "base/check.h"
#include "worker/http/http.h"

const char *
http_method_name(enum http_method m)
{
	switch (m) {
	case HTTP_GET:
		return "GET";
	case HTTP_HEAD:
		return "HEAD";
	case HTTP_POST:
		return "POST";
	case HTTP_PUT:
		return "PUT";
	case HTTP_PATCH:
		return "PATCH";
	case HTTP_DELETE:
		return "DELETE";
	case HTTP_OPTIONS:
		return "OPTIONS";
	}
	UNREACHABLE("method");
}
