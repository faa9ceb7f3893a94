// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Workers that never sleep, and the CPUs that there are. */
#include "daemon/cpus.h"
#include "test.h"

static const struct row {
	struct pvr_cpus cpus;
	unsigned int polling;
	const char *why; /* NULL: they suffice */
} rows[] = {
	{ { 2, 2 }, 0, NULL },
	{ { 2, 2 }, 1, NULL },
	{ { 2, 2 }, 2, "2 CPUs: no CPU is left for the guests" },
	{ { 2, 2 }, 3, "may use 2 CPUs: these workers wait for each other" },
	{ { 1, 2 }, 1, NULL },
	{ { 1, 2 }, 2, "may use 1 CPUs" },
	{ { 1, 1 }, 1, "this machine has 1 CPUs" },
	{ { 4, 64 }, 4, NULL },
	{ { 4, 64 }, 5, "5 workers have adapters with uar=mapped, and this process may use 4" },
	{ { 0, 0 }, 9, NULL },
	{ { 1, 1 }, 0, NULL },
};

TEST_PLAIN(test_warnings)
{
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];
		struct pvr_error why = { "" };

		assert_int_equal(pvr_cpus_suffice(row->cpus, row->polling, &why), !row->why);
		if (row->why)
			assert_non_null(strstr(why.text, row->why));
	}
}

TEST_PLAIN(test_this_machine_has_some)
{
	struct pvr_cpus cpus = pvr_cpus_get();

	assert_true(cpus.online >= 1);
	assert_in_range(cpus.allowed, 1, cpus.online);
}
