// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Lines of the log as JSON: fields, any bytes in a message, lines that are too long. */
#include <json-c/json.h>
#include <stdio.h>

#include "daemon/log_json.h"
#include "test.h"

#define LINE 1024

static struct pvr_log_entry entry_of(const char *text)
{
	return (struct pvr_log_entry){
		.time = { .tv_sec = 86400, .tv_nsec = 12345678 },
		.level = "warn",
		.text = text,
	};
}

static size_t format(char line[LINE + 1], const struct pvr_log_entry *entry)
{
	size_t len;

	memset(line, 0x55, LINE + 1);
	len = pvr_log_json(line, LINE, entry);
	assert_in_range(len, 2, LINE);
	assert_int_equal(line[LINE], 0x55);
	assert_int_equal(line[len - 1], '\n');
	line[len - 1] = '\0';
	assert_null(strchr(line, '\n'));
	return len;
}

/* Return: the object of the line, which the caller puts. */
static struct json_object *parse(const struct pvr_log_entry *entry)
{
	struct json_object *obj;
	char line[LINE + 1];

	format(line, entry);
	obj = json_tokener_parse(line);
	assert_non_null(obj);
	return obj;
}

static const char *text_of(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(obj, key, &value) ? json_object_get_string(value) : NULL;
}

TEST_PLAIN(test_line_has_time_level_and_message)
{
	struct pvr_log_entry entry = entry_of("ready");
	char line[LINE + 1];

	format(line, &entry);
	assert_string_equal(line, "{\"time\":\"1970-01-02T00:00:00.012345Z\",\"level\":\"warn\","
				  "\"message\":\"ready\"}");
}

TEST_PLAIN(test_adapter_and_peer_are_fields)
{
	struct pvr_log_entry entry = entry_of("x");
	struct json_object *obj;

	entry.adapter = "vm1";
	entry.peer = "h2";
	obj = parse(&entry);
	assert_string_equal(text_of(obj, "adapter"), "vm1");
	assert_string_equal(text_of(obj, "peer"), "h2");
	json_object_put(obj);
}

struct object {
	const char *label, *text, *key, *value; /* @key NULL: no field */
};

static const struct object objects[] = {
	{ "qp", "qp 5: RTS -> ERR: why", "qp", "5" },
	{ "cq", "cq 70000: error: why", "cq", "70000" },
	{ "srq", "srq 0: error: why", "srq", "0" },
	{ "gid", "gid 3: bind refused: why", "gid", "3" },
	{ "number in the text", "a qp 5: why", NULL, NULL },
	{ "no number", "qp x: why", NULL, NULL },
	{ "no colon", "qp 5 why", NULL, NULL },
	{ "only the word", "qp", NULL, NULL },
	{ "long number", "qp 12345678901: why", NULL, NULL },
};

TEST_CASES_WITH(void *unused, NULL, NULL, test_object_of_a_message_is_a_field, objects)
{
	static const char *const keys[] = { "qp", "cq", "srq", "gid" };
	struct pvr_log_entry entry = entry_of(row->text);
	struct json_object *obj = parse(&entry);
	size_t i;

	assert_string_equal(text_of(obj, "message"), row->text);
	for (i = 0; i < COUNT(keys); i++) {
		if (row->key && !strcmp(keys[i], row->key))
			assert_string_equal(text_of(obj, keys[i]), row->value);
		else
			assert_null(text_of(obj, keys[i]));
	}
	json_object_put(obj);
}

struct string {
	const char *label, *text, *expected;
};

static const struct string strings[] = {
	{ "quote", "a\"b", "a\"b" },
	{ "backslash", "a\\b", "a\\b" },
	{ "newline", "a\nb", "a\nb" },
	{ "escape sequence", "\x1b[1m", "\x1b[1m" },
	{ "delete", "\x7f", "\x7f" },
	{ "UTF-8", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "no UTF-8", "a\xff", "a\xef\xbf\xbd" },
	{ "cut UTF-8", "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd" },
	{ "surrogate", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
};

TEST_CASES_WITH(void *unused, NULL, NULL, test_message_of_any_bytes_is_a_string, strings)
{
	struct pvr_log_entry entry = entry_of(row->text);
	struct json_object *obj = parse(&entry);

	assert_string_equal(text_of(obj, "message"), row->expected);
	json_object_put(obj);
}

/* Each length around the limit, and characters that become six bytes. */
TEST_PLAIN(test_long_message_is_cut_in_a_whole_object)
{
	char text[2 * LINE];
	struct pvr_log_entry entry = entry_of(text);
	struct json_object *obj;
	size_t len, i;

	entry.adapter = "vm1";
	for (len = LINE - 200; len < LINE + 10; len++) {
		for (i = 0; i < len; i++)
			text[i] = i % 7 ? 'x' : '\x01';
		text[len] = '\0';
		obj = parse(&entry);
		i = strlen(text_of(obj, "message"));
		assert_in_range(i, LINE / 3, len);
		assert_memory_equal(text_of(obj, "message"), text, i);
		json_object_put(obj);
	}
}

TEST_PLAIN(test_longest_names_leave_space_for_a_message)
{
	struct pvr_log_entry entry = entry_of("qp 4294967295: the message");
	char adapter[32], peer[64];
	struct json_object *obj;

	memset(adapter, '\x01', sizeof(adapter) - 1);
	memset(peer, '\x01', sizeof(peer) - 1);
	adapter[sizeof(adapter) - 1] = peer[sizeof(peer) - 1] = '\0';
	entry.adapter = adapter;
	entry.peer = peer;
	obj = parse(&entry);
	assert_string_equal(text_of(obj, "message"), entry.text);
	assert_string_equal(text_of(obj, "qp"), "4294967295");
	json_object_put(obj);
}
