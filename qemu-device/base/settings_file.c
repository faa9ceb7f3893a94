// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Files of KEY = VALUE lines and [KIND NAME] sections. */
#include "base/settings_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings_text.h"

#define EXPECTED_MAX 64

struct reader {
	const struct pvr_settings_file_ops *ops;
	void *opaque;
	/*
	 * line numbers: current; start of the section, 0: none; the one an error message
	 * names
	 */
	size_t line, section, blame;
};

static bool end_section(struct reader *reader, struct pvr_error *err)
{
	if (!reader->section)
		return true;
	reader->blame = reader->section;
	return reader->ops->end(reader->opaque, err);
}

/* Return: the name in "[KIND NAME]", or NULL: the section has another kind. */
static char *name_of(char *line, const char *kind)
{
	size_t len = strlen(kind);

	return !strncmp(line + 1, kind, len) && line[1 + len] == ' ' ? line + len + 2 : NULL;
}

/* Parses "[KIND NAME]". @kind: set to its index. Return: NAME, or NULL. */
static char *section_name(const struct reader *reader, char *line, unsigned int *kind)
{
	size_t len = strlen(line);
	char *name = NULL;

	if (line[len - 1] != ']')
		return NULL;
	for (*kind = 0; reader->ops->kinds[*kind] && !name; ++*kind)
		name = name_of(line, reader->ops->kinds[*kind]);
	if (!name)
		return NULL;
	--*kind;
	line[len - 1] = '\0';
	return pvr_trim(name);
}

/* "[adapter NAME]", or "[adapter NAME] or [fabric NAME]". */
static const char *expected(const struct reader *reader, char buf[EXPECTED_MAX])
{
	const char *const *kind;
	size_t len = 0;

	for (kind = reader->ops->kinds; *kind; kind++)
		len += (size_t)snprintf(buf + len, EXPECTED_MAX - len, "%s[%s NAME]",
					len ? " or " : "", *kind);
	return buf;
}

static bool begin_section(struct reader *reader, char *line, struct pvr_error *err)
{
	char buf[EXPECTED_MAX], *name;
	unsigned int kind;

	name = section_name(reader, line, &kind);
	if (!name)
		return pvr_fail(err, "section '%.200s': expected %s", line, expected(reader, buf));
	if (!end_section(reader, err))
		return false;
	reader->section = reader->blame = reader->line;
	return reader->ops->begin(reader->opaque, kind, name, reader->line, err);
}

static bool read_line(struct reader *reader, char *line, struct pvr_error *err)
{
	const struct pvr_settings_file_ops *ops = reader->ops;
	char buf[EXPECTED_MAX], *value, *key;

	line = pvr_trim(line);
	if (!*line || *line == '#')
		return true;
	if (*line == '[')
		return begin_section(reader, line, err);
	value = strchr(line, '=');
	if (!value)
		return pvr_fail(err, "'%.200s' is neither KEY = VALUE nor %s", line,
				expected(reader, buf));
	if (!reader->section && !ops->set)
		return pvr_fail(err, "'%.200s' is before the first %s", line,
				expected(reader, buf));
	*value++ = '\0';
	key = pvr_trim(line);
	value = pvr_trim(value);
	return reader->section ? ops->set_in_section(reader->opaque, key, value, err)
			       : ops->set(reader->opaque, key, value, err);
}

static bool read_lines(struct reader *reader, FILE *file, const char *path, struct pvr_error *err)
{
	struct pvr_error why = { "" };
	char *line = NULL;
	size_t size = 0;
	bool ok = true;

	while (ok && getline(&line, &size, file) >= 0) {
		reader->blame = ++reader->line;
		ok = read_line(reader, line, &why);
	}
	if (ok && ferror(file))
		ok = pvr_fail(&why, "%s", strerror(errno));
	if (ok)
		ok = end_section(reader, &why);
	free(line);
	if (!ok)
		pvr_fail(err, "%s:%zu: %.400s", path, reader->blame, why.text);
	return ok;
}

bool pvr_settings_file_read(const char *path, const struct pvr_settings_file_ops *ops, void *opaque,
			    struct pvr_error *err)
{
	struct reader reader = { .ops = ops, .opaque = opaque };
	FILE *file = fopen(path, "re");
	bool ok;

	if (!file)
		return pvr_fail(err, "cannot read %s %s: %s", ops->what, path, strerror(errno));
	ok = read_lines(&reader, file, path, err);
	fclose(file);
	return ok;
}
