// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Lines of the log as JSON objects. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "daemon/log_json.h"

#define NUMBER_DIGITS 10
#define TIME_TEXT 40

/* A line in progress. The last bytes of @buf are kept for the end of the object. */
struct json_line {
	char *buf;
	size_t len, size;
};

static void append(struct json_line *line, const char *data, size_t len)
{
	if (len > line->size - line->len)
		return;
	memcpy(line->buf + line->len, data, len);
	line->len += len;
}

static void append_text(struct json_line *line, const char *text)
{
	append(line, text, strlen(text));
}

/* ------------------------------------------------------------------- strings */

/* Writes the character at *@text as a part of a JSON string, and advances. Return: its length. */
static size_t escape(const char **text, char out[8])
{
	const unsigned char *at = (const unsigned char *)*text;
	size_t len = pvr_utf8_len(*text);

	*text += len ? len : 1;
	if (!len)
		return (size_t)snprintf(out, 8, "\\ufffd");
	if (*at == '"' || *at == '\\')
		return (size_t)snprintf(out, 8, "\\%c", *at);
	if (*at < 0x20 || *at == 0x7f)
		return (size_t)snprintf(out, 8, "\\u%04x", *at);
	memcpy(out, at, len);
	return len;
}

/* The string ends where the line is full. */
static void append_string(struct json_line *line, const char *text)
{
	char out[8];
	size_t len;

	append_text(line, "\"");
	line->size--; /* for the quote */
	while (*text) {
		len = escape(&text, out);
		if (len > line->size - line->len)
			break;
		append(line, out, len);
	}
	line->size++;
	append_text(line, "\"");
}

static void append_field(struct json_line *line, const char *key, const char *value)
{
	append_text(line, ",\"");
	append_text(line, key);
	append_text(line, "\":");
	append_string(line, value);
}

/* ------------------------------------------------------------------- objects */

/* The engine's messages about an object begin with it: "qp 5: ...". */
static void append_object(struct json_line *line, const char *text)
{
	static const char *const kinds[] = { "qp", "cq", "srq", "gid" };
	size_t i, len, digits;
	const char *number;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		len = strlen(kinds[i]);
		if (strncmp(text, kinds[i], len) != 0 || text[len] != ' ')
			continue;
		number = text + len + 1;
		digits = strspn(number, "0123456789");
		if (!digits || digits > NUMBER_DIGITS || number[digits] != ':')
			return;
		append_text(line, ",\"");
		append_text(line, kinds[i]);
		append_text(line, "\":");
		append(line, number, digits);
		return;
	}
}

static void append_time(struct json_line *line, const struct timespec *time)
{
	char text[TIME_TEXT];
	struct tm tm;
	size_t len;

	gmtime_r(&time->tv_sec, &tm);
	len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, sizeof(text) - len, ".%06ldZ", time->tv_nsec / 1000);
	append_string(line, text);
}

size_t pvr_log_json(char *buf, size_t size, const struct pvr_log_entry *entry)
{
	static const char end[] = "}\n";
	struct json_line line = { .buf = buf, .size = size - strlen(end) };

	append_text(&line, "{\"time\":");
	append_time(&line, &entry->time);
	append_field(&line, "level", entry->level);
	if (entry->adapter)
		append_field(&line, "adapter", entry->adapter);
	if (entry->peer)
		append_field(&line, "peer", entry->peer);
	append_object(&line, entry->text);
	append_field(&line, "message", entry->text);
	line.size = size;
	append_text(&line, end);
	return line.len;
}
