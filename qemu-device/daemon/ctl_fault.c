// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmactl fault: requests of its sub-commands. */
#include "daemon/ctl_fault.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/json_put.h"

#define LINE_MAX_BYTES 1024
#define LINES_MAX 256

/* --------------------------------------------------------------------------- add */

static bool append(char *text, size_t size, const char *word, struct pvr_error *err)
{
	size_t len = strlen(text);
	int n = snprintf(text + len, size - len, "%s%s", len ? " " : "", word);

	return n < (int)(size - len) ||
	       pvr_fail(err, "the fault is longer than %zu characters", size - 1);
}

static bool add(struct json_object *request, char **args, int num, const char *words,
		struct pvr_error *err)
{
	struct json_object *list = json_object_new_array();
	char text[LINE_MAX_BYTES] = "";
	int i;

	put_text(request, "command", "fault-add");
	json_object_object_add(request, "faults", list);
	if (*words && !append(text, sizeof(text), words, err))
		return false;
	for (i = 0; i < num; i++)
		if (!append(text, sizeof(text), args[i], err))
			return false;
	json_object_array_add(list, json_object_new_string(text));
	return true;
}

/* -------------------------------------------------------------------------- load */

/* Return: false with @err filled if the line is no text of a fault, or there are too many. */
static bool take_line(struct json_object *list, char *line, const char *path, int number,
		      struct pvr_error *err)
{
	size_t len = strcspn(line, "\n");

	if (!line[len] && len + 1 == LINE_MAX_BYTES)
		return pvr_fail(err, "%.512s:%d: the line is longer than %d characters", path,
				number, LINE_MAX_BYTES - 2);
	line[strcspn(line, "#\n")] = '\0';
	line += strspn(line, " \t");
	for (len = strlen(line); len && (line[len - 1] == ' ' || line[len - 1] == '\t'); len--)
		line[len - 1] = '\0';
	if (!len)
		return true;
	if (json_object_array_length(list) == LINES_MAX)
		return pvr_fail(err, "%.512s:%d: more than %d faults", path, number, LINES_MAX);
	json_object_array_add(list, json_object_new_string(line));
	return true;
}

static bool read_lines(struct json_object *list, FILE *file, const char *path,
		       struct pvr_error *err)
{
	char line[LINE_MAX_BYTES];
	int number;

	for (number = 1; fgets(line, sizeof(line), file); number++)
		if (!take_line(list, line, path, number, err))
			return false;
	if (ferror(file))
		return pvr_fail(err, "cannot read %.512s: %s", path, strerror(errno));
	if (!json_object_array_length(list))
		return pvr_fail(err, "%.512s has no fault", path);
	return true;
}

static bool load(struct json_object *request, char **args, int num, const char *words,
		 struct pvr_error *err)
{
	struct json_object *list = json_object_new_array();
	FILE *file;
	bool ok;

	put_text(request, "command", "fault-add");
	json_object_object_add(request, "faults", list);
	file = fopen(args[0], "re");
	if (!file)
		return pvr_fail(err, "cannot read %.512s: %s", args[0], strerror(errno));
	ok = read_lines(list, file, args[0], err);
	fclose(file);
	return ok;
}

/* ------------------------------------------------------------------ list and clear */

static bool list(struct json_object *request, char **args, int num, const char *words,
		 struct pvr_error *err)
{
	put_text(request, "command", "fault-list");
	return true;
}

static bool clear(struct json_object *request, char **args, int num, const char *words,
		  struct pvr_error *err)
{
	put_text(request, "command", "fault-clear");
	if (num)
		put_text(request, "id", args[0]);
	return true;
}

static const struct {
	const char *name;
	int min_args, max_args;
	bool (*fill)(struct json_object *request, char **args, int num, const char *words,
		     struct pvr_error *err);
} subs[] = {
	{ "add", 0, 64, add },
	{ "clear", 0, 1, clear },
	{ "list", 0, 0, list },
	{ "load", 1, 1, load },
};

bool pvr_ctl_fault_request(struct json_object *request, char **args, int num, const char *words,
			   struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < sizeof(subs) / sizeof(subs[0]); i++) {
		if (strcmp(args[0], subs[i].name) != 0)
			continue;
		if (*words && subs[i].fill != add)
			break;
		if (num - 1 < subs[i].min_args || num - 1 > subs[i].max_args)
			return pvr_fail(err, "'fault %s' with %d arguments, see pvrdmactl --help",
					args[0], num - 1);
		return subs[i].fill(request, args + 1, num - 1, words, err);
	}
	if (i < sizeof(subs) / sizeof(subs[0]))
		return pvr_fail(err,
				"'fault %s' has no options --fabric, --from, --to, --qp, --seed",
				args[0]);
	return pvr_fail(err, "unknown command 'fault %s', see pvrdmactl --help", args[0]);
}
