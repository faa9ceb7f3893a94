// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The text format of Prometheus, version 0.0.4: families, labels, samples. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "metrics/text.h"

#define FIRST_SIZE 65536
#define NUMBER_MAX 24
#define NS_DIGITS 9

/* --------------------------------------------------------------------- buffer */

static bool reserve(struct pvr_metrics_text *text, size_t len)
{
	size_t size = text->size ? text->size : FIRST_SIZE;
	char *data;

	if (text->failed)
		return false;
	if (text->size - text->len >= len)
		return true;
	while (size - text->len < len)
		size *= 2;
	data = realloc(text->data, size);
	text->failed = !data;
	if (data) {
		text->data = data;
		text->size = size;
	}
	return data != NULL;
}

static void append(struct pvr_metrics_text *text, const char *data, size_t len)
{
	if (!reserve(text, len))
		return;
	memcpy(text->data + text->len, data, len);
	text->len += len;
}

static void append_text(struct pvr_metrics_text *text, const char *data)
{
	append(text, data, strlen(data));
}

void pvr_metrics_text_free(struct pvr_metrics_text *text)
{
	free(text->data);
	*text = (struct pvr_metrics_text){ .data = NULL };
}

/* --------------------------------------------------------------------- labels */

/* Return: the bytes written to @to, without a NUL; @to has room for two per byte. */
static size_t escape(char *to, const char *value)
{
	char *start = to;
	size_t len;

	for (; *value; value += len) {
		len = pvr_utf8_len(value);
		if (*value == '\\' || *value == '"' || *value == '\n') {
			*to++ = '\\';
			*to++ = *value == '\n' ? 'n' : *value;
		} else if (len) {
			memcpy(to, value, len);
			to += len;
		} else {
			*to++ = '?';
			len = 1;
		}
	}
	return (size_t)(to - start);
}

/* Return: the new length; @len if the pair does not fit. */
static size_t add_label(char buf[PVR_METRICS_LABELS], size_t len, const char *name,
			const char *value)
{
	/* A comma, an equals sign, two quotes and the NUL. */
	if (len + strlen(name) + 2 * strlen(value) + 5 > PVR_METRICS_LABELS)
		return len;
	if (len)
		buf[len++] = ',';
	memcpy(buf + len, name, strlen(name));
	len += strlen(name);
	buf[len++] = '=';
	buf[len++] = '"';
	len += escape(buf + len, value);
	buf[len++] = '"';
	return len;
}

const char *pvr_metrics_label(char buf[PVR_METRICS_LABELS], const char *name, const char *value)
{
	buf[add_label(buf, 0, name, value)] = '\0';
	return buf;
}

const char *pvr_metrics_labels(char buf[PVR_METRICS_LABELS], const char *name, const char *value,
			       const char *name2, const char *value2)
{
	size_t len = add_label(buf, 0, name, value);

	buf[add_label(buf, len, name2, value2)] = '\0';
	return buf;
}

/* -------------------------------------------------------------------- samples */

void pvr_metrics_head(struct pvr_metrics_text *text, const char *name, const char *type,
		      const char *help)
{
	append_text(text, "# HELP ");
	append_text(text, name);
	append_text(text, " ");
	append_text(text, help);
	append_text(text, "\n# TYPE ");
	append_text(text, name);
	append_text(text, " ");
	append_text(text, type);
	append_text(text, "\n");
}

/* Writes the digits of @value to the end of @buf. Return: the first one. snprintf() is slower. */
static char *digits(char buf[NUMBER_MAX], uint64_t value)
{
	size_t at = NUMBER_MAX;

	do {
		buf[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return &buf[at];
}

static void append_number(struct pvr_metrics_text *text, uint64_t value)
{
	char buf[NUMBER_MAX], *at = digits(buf, value);

	append(text, at, (size_t)(buf + NUMBER_MAX - at));
}

/* Exactly nine digits, for a fraction. */
static void append_fraction(struct pvr_metrics_text *text, uint64_t ns)
{
	char buf[NUMBER_MAX];

	digits(buf, ns + 1000000000);
	append(text, buf + NUMBER_MAX - NS_DIGITS, NS_DIGITS);
}

static void append_series(struct pvr_metrics_text *text, const char *name, const char *labels,
			  const char *more)
{
	append_text(text, name);
	if (labels || more) {
		append_text(text, "{");
		append_text(text, labels ? labels : "");
		append_text(text, labels && more ? "," : "");
		append_text(text, more ? more : "");
		append_text(text, "}");
	}
	append_text(text, " ");
}

void pvr_metrics_sample(struct pvr_metrics_text *text, const char *name, const char *labels,
			const char *more, uint64_t value)
{
	append_series(text, name, labels, more);
	append_number(text, value);
	append_text(text, "\n");
}

void pvr_metrics_sample_ns(struct pvr_metrics_text *text, const char *name, const char *labels,
			   const char *more, uint64_t ns)
{
	append_series(text, name, labels, more);
	append_number(text, ns / 1000000000);
	append_text(text, ".");
	append_fraction(text, ns % 1000000000);
	append_text(text, "\n");
}

void pvr_metrics_counter(struct pvr_metrics_text *text, const char *name, const char *help,
			 uint64_t value)
{
	pvr_metrics_head(text, name, "counter", help);
	pvr_metrics_sample(text, name, NULL, NULL, value);
}

void pvr_metrics_gauge(struct pvr_metrics_text *text, const char *name, const char *help,
		       uint64_t value)
{
	pvr_metrics_head(text, name, "gauge", help);
	pvr_metrics_sample(text, name, NULL, NULL, value);
}
