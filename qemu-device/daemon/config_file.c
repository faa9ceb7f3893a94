// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The configuration file: key = value lines and [adapter NAME] sections. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

struct reader {
	struct pvr_settings *settings;
	struct pvr_adapter_settings adapter; /* of the section we are in */
	bool in_adapter;
	size_t line, section; /* numbers: where we are, where the section began */
	size_t blame; /* the line that a mistake is on */
};

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

static bool end_section(struct reader *reader, struct pvr_error *err)
{
	if (!reader->in_adapter)
		return true;
	reader->in_adapter = false;
	reader->blame = reader->section;
	return pvr_adapter_settings_check(&reader->adapter, err) &&
	       pvr_settings_add_adapter(reader->settings, &reader->adapter, err);
}

static bool begin_section(struct reader *reader, char *line, struct pvr_error *err)
{
	size_t len = strlen(line);

	if (line[len - 1] != ']' || strncmp(line, "[adapter ", 9))
		return pvr_fail(err, "section '%s': expected [adapter NAME]", line);
	line[len - 1] = '\0';
	if (!end_section(reader, err))
		return false;
	memset(&reader->adapter, 0, sizeof(reader->adapter));
	reader->in_adapter = true;
	reader->section = reader->blame = reader->line;
	return pvr_adapter_settings_set(&reader->adapter, "name", trim(line + 9), err);
}

static bool read_line(struct reader *reader, char *line, struct pvr_error *err)
{
	char *value, *key;

	line = trim(line);
	if (!*line || *line == '#')
		return true;
	if (*line == '[')
		return begin_section(reader, line, err);
	value = strchr(line, '=');
	if (!value)
		return pvr_fail(err, "'%s' is neither KEY = VALUE nor [adapter NAME]", line);
	*value++ = '\0';
	key = trim(line);
	value = trim(value);
	return reader->in_adapter ? pvr_adapter_settings_set(&reader->adapter, key, value, err)
				  : pvr_settings_set(reader->settings, key, value, err);
}

static bool read_lines(struct reader *reader, FILE *file, const char *path, struct pvr_error *err)
{
	struct pvr_error why = { "" };
	size_t size = 0;
	char *line = NULL;
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

bool pvr_settings_read_file(struct pvr_settings *settings, const char *path, struct pvr_error *err)
{
	struct reader reader = { .settings = settings };
	FILE *file = fopen(path, "re");
	bool ok;

	if (!file)
		return pvr_fail(err, "cannot read configuration file %s: %s", path,
				strerror(errno));
	ok = read_lines(&reader, file, path, err);
	fclose(file);
	return ok;
}
