// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The text format of Prometheus: numbers, labels of any bytes, growth. */
#include <stdio.h>
#include <stdlib.h>

#include "metrics/text.h"
#include "test.h"

static void assert_text(struct pvr_metrics_text *text, const char *expected)
{
	assert_false(text->failed);
	assert_int_equal(text->len, strlen(expected));
	assert_memory_equal(text->data, expected, text->len);
	pvr_metrics_text_free(text);
}

TEST_PLAIN(test_sample_has_name_labels_and_value)
{
	struct pvr_metrics_text text = { .data = NULL };

	pvr_metrics_head(&text, "a_total", "counter", "Help.");
	pvr_metrics_sample(&text, "a_total", NULL, NULL, 0);
	pvr_metrics_sample(&text, "a_total", "x=\"1\"", NULL, 7);
	pvr_metrics_sample(&text, "a_total", NULL, "y=\"2\"", 10);
	pvr_metrics_sample(&text, "a_total", "x=\"1\"", "y=\"2\"", UINT64_MAX);
	assert_text(&text, "# HELP a_total Help.\n# TYPE a_total counter\na_total 0\n"
			   "a_total{x=\"1\"} 7\na_total{y=\"2\"} 10\n"
			   "a_total{x=\"1\",y=\"2\"} 18446744073709551615\n");
}

TEST_PLAIN(test_nanoseconds_become_seconds)
{
	struct pvr_metrics_text text = { .data = NULL };

	pvr_metrics_sample_ns(&text, "s", NULL, NULL, 0);
	pvr_metrics_sample_ns(&text, "s", NULL, NULL, 1);
	pvr_metrics_sample_ns(&text, "s", NULL, NULL, 12000000345);
	pvr_metrics_sample_ns(&text, "s", NULL, NULL, UINT64_MAX);
	assert_text(&text, "s 0.000000000\ns 0.000000001\ns 12.000000345\n"
			   "s 18446744073.709551615\n");
}

TEST_PLAIN(test_large_text_is_complete)
{
	struct pvr_metrics_text text = { .data = NULL };

	for (unsigned int i = 0; i < 100000; i++)
		pvr_metrics_sample(&text, "name", NULL, NULL, 1234567);
	assert_false(text.failed);
	assert_int_equal(text.len, 100000 * strlen("name 1234567\n"));
	assert_memory_equal(text.data + text.len - 13, "name 1234567\n", 13);
	pvr_metrics_text_free(&text);
}

struct escape {
	const char *label, *value, *expected;
};

static const struct escape escapes[] = {
	{ "plain", "vm-1.x_y", "vm-1.x_y" },
	{ "empty", "", "" },
	{ "quote", "a\"b", "a\\\"b" },
	{ "backslash", "a\\", "a\\\\" },
	{ "newline", "a\nb", "a\\nb" },
	{ "two bytes", "\xc3\xa4", "\xc3\xa4" },
	{ "three bytes", "\xe2\x82\xac", "\xe2\x82\xac" },
	{ "four bytes", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
	{ "single byte",
	  "a\xff"
	  "b",
	  "a?b" },
	{ "cut", "a\xe2\x82", "a??" },
	{ "cut four", "\xf0\x9f\x98", "???" },
	{ "overlong", "\xc0\xaf", "??" },
	{ "overlong three", "\xe0\x80\xaf", "???" },
	{ "surrogate", "\xed\xa0\x80", "???" },
	{ "too large", "\xf4\x90\x80\x80", "????" },
};

TEST_CASES_WITH(void *unused, NULL, NULL, test_label_is_escaped, escapes)
{
	char buf[PVR_METRICS_LABELS], expected[PVR_METRICS_LABELS];

	snprintf(expected, sizeof(expected), "x=\"%s\",y=\"1\"", row->expected);
	assert_string_equal(pvr_metrics_labels(buf, "x", row->value, "y", "1"), expected);
}

TEST_PLAIN(test_label_that_does_not_fit_is_left_out)
{
	char buf[PVR_METRICS_LABELS], value[PVR_METRICS_LABELS];

	memset(value, '"', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	assert_string_equal(pvr_metrics_labels(buf, "x", value, "y", "1"), "y=\"1\"");
	/* The longest one that fits: name, four bytes around it, NUL. */
	value[(PVR_METRICS_LABELS - 1 - 5) / 2] = '\0';
	pvr_metrics_labels(buf, "x", value, "y", "1");
	assert_int_equal(strlen(buf), 2 + 2 + 2 * strlen(value));
	assert_null(strchr(buf, 'y'));
}
