/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Settings files of tests. */
#ifndef UNIT_TEXT_FILE_H
#define UNIT_TEXT_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static inline void text_file_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A new file, which the caller unlinks; @path is set to its name. */
static inline void text_file_create(char path[32], const char *text)
{
	strcpy(path, "/tmp/pvrdma_test.XXXXXX");
	close(mkstemp(path));
	text_file_write(path, text);
}

#endif /* UNIT_TEXT_FILE_H */
