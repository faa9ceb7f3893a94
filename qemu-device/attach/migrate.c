// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Migration of a device by its vfio-user client. */
#include <errno.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/migrate.h"

/* Flags and features of VFIO. */
#define FEATURE_INDEX 0xffffu
#define FEATURE_GET (1u << 16)
#define FEATURE_SET (1u << 17)
#define FEATURE_PROBE (1u << 18)
#define MIGRATION_STOP_COPY (1ull << 0)

struct feature_hdr {
	uint32_t argsz, flags;
};

struct feature_state {
	uint32_t state;
	int32_t data_fd;
};

struct log_start {
	uint64_t page_size;
	uint32_t num_ranges, reserved;
	/* followed by ranges */
};

struct log_range {
	uint64_t iova, length;
};

struct log_report {
	uint64_t iova, length, page_size;
	/* in the reply followed by the bitmap */
};

struct mig_data {
	uint32_t argsz, size;
};

static const char *const state_names[PVR_MIGRATE_NUM] = {
	[PVR_MIGRATE_ERROR] = "ERROR",	     [PVR_MIGRATE_STOP] = "STOP",
	[PVR_MIGRATE_RUNNING] = "RUNNING",   [PVR_MIGRATE_STOP_COPY] = "STOP_COPY",
	[PVR_MIGRATE_RESUMING] = "RESUMING",
};

static const char *state_name(uint32_t state)
{
	return state < PVR_MIGRATE_NUM ? state_names[state] : "?";
}

void pvr_migrate_init(struct pvr_migrate *mig, struct pvr_adapter *adapter)
{
	*mig = (struct pvr_migrate){ .adapter = adapter, .state = PVR_MIGRATE_RUNNING };
}

static void end_save(struct pvr_migrate *mig)
{
	pvr_save_end(mig->save);
	mig->save = NULL;
}

void pvr_migrate_reset(struct pvr_migrate *mig)
{
	end_save(mig);
	mig->is_saved = false;
	mig->is_prepared = false;
	mig->state = PVR_MIGRATE_RUNNING;
}

void pvr_migrate_set_used(struct pvr_migrate *mig)
{
	if (mig->is_used)
		return;
	mig->is_used = true;
	pvr_adapter_set_migratable(mig->adapter, true);
}

void pvr_migrate_set_paused(struct pvr_migrate *mig, bool is_saved)
{
	mig->state = PVR_MIGRATE_STOP;
	mig->is_saved = is_saved;
}

void pvr_migrate_exit(struct pvr_migrate *mig)
{
	pvr_adapter_set_migratable(mig->adapter, false);
	pvr_adapter_stop_dirty_log(mig->adapter);
	end_save(mig);
	free(mig->buffer);
	mig->buffer = NULL;
}

bool pvr_migrate_lives_elsewhere(const struct pvr_migrate *mig)
{
	return mig->is_saved && mig->state != PVR_MIGRATE_RUNNING;
}

void *pvr_migrate_get_buffer(struct pvr_migrate *mig)
{
	if (!mig->buffer)
		mig->buffer = malloc(PVR_MIG_BODY_MAX);
	return mig->buffer;
}

/* ------------------------------------------------------------- transitions */

/* -EINPROGRESS: the adapter works in steps, and the arc is tried again. */

static int stop(struct pvr_migrate *mig)
{
	return pvr_adapter_stop(mig->adapter);
}

static int start(struct pvr_migrate *mig)
{
	int ret = pvr_adapter_start(mig->adapter);

	if (!ret)
		mig->is_saved = false;
	return ret;
}

static int begin_save(struct pvr_migrate *mig)
{
	mig->is_saved = false;
	return pvr_adapter_save_begin(mig->adapter, &mig->save);
}

static int end_reading(struct pvr_migrate *mig)
{
	end_save(mig);
	return 0;
}

/* The state that comes needs an adapter without objects. */
static int begin_load(struct pvr_migrate *mig)
{
	if (!pvr_adapter_prepare_reset(mig->adapter))
		return -EINPROGRESS;
	pvr_adapter_reset(mig->adapter);
	mig->is_saved = false;
	return 0;
}

static int end_load(struct pvr_migrate *mig)
{
	return pvr_adapter_load_finish(mig->adapter);
}

struct arc {
	enum pvr_migrate_state next;
	int (*run)(struct pvr_migrate *mig);
	bool is_final; /* a failure cannot be undone */
};

/* The first arc of the way between two states. next is ERROR: there is none. */
static struct arc first_arc(enum pvr_migrate_state from, uint32_t to)
{
	static const struct arc to_stop[PVR_MIGRATE_NUM] = {
		[PVR_MIGRATE_RUNNING] = { PVR_MIGRATE_STOP, stop, false },
		[PVR_MIGRATE_STOP_COPY] = { PVR_MIGRATE_STOP, end_reading, false },
		[PVR_MIGRATE_RESUMING] = { PVR_MIGRATE_STOP, end_load, true },
	};
	static const struct arc from_stop[PVR_MIGRATE_NUM] = {
		[PVR_MIGRATE_RUNNING] = { PVR_MIGRATE_RUNNING, start, true },
		[PVR_MIGRATE_STOP_COPY] = { PVR_MIGRATE_STOP_COPY, begin_save, false },
		[PVR_MIGRATE_RESUMING] = { PVR_MIGRATE_RESUMING, begin_load, false },
	};

	if (to >= PVR_MIGRATE_NUM || to == PVR_MIGRATE_ERROR)
		return (struct arc){ PVR_MIGRATE_ERROR, NULL, false };
	return from == PVR_MIGRATE_STOP ? from_stop[to] : to_stop[from];
}

/* Return: 0, -EINPROGRESS, or the -errno of the arc that failed. */
static int change_state(struct pvr_migrate *mig, uint32_t to)
{
	struct arc arc;
	int ret;

	while (mig->state != to) {
		arc = first_arc(mig->state, to);
		if (!arc.run)
			return -EINVAL;
		ret = arc.run(mig);
		if (ret == -EINPROGRESS)
			return ret;
		if (ret) {
			if (arc.is_final)
				mig->state = PVR_MIGRATE_ERROR;
			return ret;
		}
		mig->state = arc.next;
	}
	return 0;
}

/* Return: whether the message sets the state, to @to. */
static bool sets_state(const void *body, size_t len, uint32_t *to)
{
	struct feature_state wanted;
	struct feature_hdr hdr;

	if (len < sizeof(hdr) + sizeof(wanted))
		return false;
	memcpy(&hdr, body, sizeof(hdr));
	if (hdr.flags != (FEATURE_SET | VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE))
		return false;
	memcpy(&wanted, (const char *)body + sizeof(hdr), sizeof(wanted));
	*to = wanted.state;
	return true;
}

bool pvr_migrate_prepare(struct pvr_migrate *mig, const void *body, size_t len)
{
	uint32_t to;

	if (mig->is_prepared || !sets_state(body, len, &to))
		return true;
	mig->result = change_state(mig, to);
	mig->is_prepared = mig->result != -EINPROGRESS;
	return mig->is_prepared;
}

/* ---------------------------------------------------------------- features */

/* The request, and the space for its reply. */
struct feature {
	struct feature_hdr hdr;
	const uint8_t *data; /* of the request */
	size_t len;
	uint8_t *reply; /* holds a copy of the data */
	size_t reply_len; /* initially @len for SET and 0 for GET */
};

static int get_migration(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err)
{
	uint64_t flags = MIGRATION_STOP_COPY;

	pvr_migrate_set_used(mig);
	memcpy(f->reply, &flags, sizeof(flags));
	f->reply_len = sizeof(flags);
	return 0;
}

static int get_state(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err)
{
	struct feature_state now = { .state = mig->state, .data_fd = -1 };

	memcpy(f->reply, &now, sizeof(now));
	f->reply_len = sizeof(now);
	return 0;
}

/* The transition is over, see pvr_migrate_prepare(). */
static int set_state(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err)
{
	struct feature_state wanted;
	char why[256] = "";
	int ret = mig->result;

	memcpy(&wanted, f->data, sizeof(wanted));
	mig->is_prepared = false;
	pvr_migrate_set_used(mig);
	if (!ret)
		return 0;
	if (mig->state == PVR_MIGRATE_ERROR)
		pvr_adapter_load_error(mig->adapter, why, sizeof(why));
	pvr_fail(err, "migration state %s (%u) was not reached, the device is in %s: %s",
		 state_name(wanted.state), wanted.state, state_name(mig->state),
		 why[0] ? why : strerror(-ret));
	return ret;
}

/* ---------------------------------------------------------------- dirty pages */

static int check_page_size(uint64_t page_size, struct pvr_error *err)
{
	if (page_size == PVR_PAGE_SIZE)
		return 0;
	pvr_fail(err, "log of dirty pages with pages of %llu bytes, expected %u",
		 (unsigned long long)page_size, PVR_PAGE_SIZE);
	return -EINVAL;
}

static int check_ranges(const struct feature *f, uint32_t num, struct pvr_error *err)
{
	struct log_range range;
	uint32_t i;

	if (num > (f->len - sizeof(struct log_start)) / sizeof(range)) {
		pvr_fail(err, "log of dirty pages with %u ranges in %zu bytes", num, f->len);
		return -EINVAL;
	}
	for (i = 0; i < num; i++) {
		memcpy(&range, f->data + sizeof(struct log_start) + i * sizeof(range),
		       sizeof(range));
		if (range.length && range.iova + range.length - 1 >= range.iova)
			continue;
		pvr_fail(err, "log of dirty pages with range %u, 0x%llx bytes at 0x%llx", i,
			 (unsigned long long)range.length, (unsigned long long)range.iova);
		return -EINVAL;
	}
	return 0;
}

/* All RAM is logged, as far as it is mapped: the ranges are only checked. */
static int start_log(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err)
{
	struct log_start start;
	int ret;

	memcpy(&start, f->data, sizeof(start));
	ret = check_page_size(start.page_size, err);
	if (!ret)
		ret = check_ranges(f, start.num_ranges, err);
	return ret ? ret : pvr_adapter_start_dirty_log(mig->adapter);
}

static int stop_log(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err)
{
	pvr_adapter_stop_dirty_log(mig->adapter);
	return 0;
}

/* Return: the bytes of a bitmap, in whole words; 0: @length is not in pages, or it is too long. */
static size_t bitmap_size(uint64_t length)
{
	const uint64_t span = 64ull * PVR_PAGE_SIZE; /* of a word */

	if (!length || length % PVR_PAGE_SIZE || length > PVR_MIG_DATA_MAX / 8 * span)
		return 0;
	return (size_t)((length + span - 1) / span * sizeof(uint64_t));
}

static int report_log(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err)
{
	struct log_report report;
	size_t size;
	int ret;

	memcpy(&report, f->data, sizeof(report));
	ret = check_page_size(report.page_size, err);
	if (ret)
		return ret;
	size = bitmap_size(report.length);
	if (!size || f->hdr.argsz < sizeof(f->hdr) + sizeof(report) + size) {
		pvr_fail(err,
			 "report of dirty pages for 0x%llx bytes with space for %u bytes, "
			 "expected whole pages and at most %llu MiB",
			 (unsigned long long)report.length, f->hdr.argsz,
			 8ull * PVR_MIG_DATA_MAX * PVR_PAGE_SIZE >> 20);
		return -EINVAL;
	}
	memset(f->reply + sizeof(report), 0, size);
	f->reply_len = sizeof(report) + size;
	return pvr_adapter_take_dirty_log(mig->adapter, report.iova, report.length,
					  (uint64_t *)(f->reply + sizeof(report)));
}

static int set_throttle(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err)
{
	uint32_t percent;

	memcpy(&percent, f->data, sizeof(percent));
	if (percent > PVR_THROTTLE_MAX) {
		pvr_fail(err, "throttle of %u %%, expected at most %u", percent, PVR_THROTTLE_MAX);
		return -EINVAL;
	}
	return pvr_adapter_throttle(mig->adapter, percent);
}

/* A method is NULL if the feature has not got it. The lengths are those of the data, at least. */
static const struct feature_type {
	uint32_t index;
	int (*get)(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err);
	int (*set)(struct pvr_migrate *mig, struct feature *f, struct pvr_error *err);
	size_t get_len, set_len;
} feature_types[] = {
	{ VFIO_DEVICE_FEATURE_MIGRATION, .get = get_migration },
	{ VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE, get_state, set_state,
	  .set_len = sizeof(struct feature_state) },
	{ VFIO_DEVICE_FEATURE_DMA_LOGGING_START, .set = start_log,
	  .set_len = sizeof(struct log_start) },
	{ VFIO_DEVICE_FEATURE_DMA_LOGGING_STOP, .set = stop_log },
	{ VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT, .get = report_log,
	  .get_len = sizeof(struct log_report) },
	{ PVR_MIG_FEATURE_THROTTLE, .set = set_throttle, .set_len = sizeof(uint32_t) },
};

/* Return: NULL if the device lacks the feature, or one of the methods in @flags. */
static const struct feature_type *find_feature(uint32_t flags)
{
	uint32_t index = flags & FEATURE_INDEX;
	const struct feature_type *type;
	size_t i;

	for (i = 0; i < sizeof(feature_types) / sizeof(feature_types[0]); i++) {
		type = &feature_types[i];
		if (type->index == index && !(flags & FEATURE_GET && !type->get) &&
		    !(flags & FEATURE_SET && !type->set))
			return type;
	}
	return NULL;
}

static int run_feature(struct pvr_migrate *mig, const struct feature_type *type, struct feature *f,
		       struct pvr_error *err)
{
	bool is_set = f->hdr.flags & FEATURE_SET;
	size_t least = is_set ? type->set_len : type->get_len;

	if (f->len < least) {
		pvr_fail(err, "DEVICE_FEATURE 0x%x with %zu bytes of data, expected at least %zu",
			 f->hdr.flags, f->len, least);
		return -EINVAL;
	}
	return is_set ? type->set(mig, f, err) : type->get(mig, f, err);
}

int pvr_migrate_feature(struct pvr_migrate *mig, const void *body, size_t len,
			struct pvr_mig_reply *reply, struct pvr_error *err)
{
	const struct feature_type *type;
	struct feature f;
	int ret;

	memcpy(&f.hdr, body, sizeof(f.hdr));
	type = find_feature(f.hdr.flags);
	if (!type) {
		pvr_fail(err, "DEVICE_FEATURE 0x%x is not supported", f.hdr.flags);
		return -ENOTTY;
	}
	if (!pvr_migrate_get_buffer(mig)) {
		pvr_fail(err, "out of memory");
		return -ENOMEM;
	}
	f.data = (const uint8_t *)body + sizeof(f.hdr);
	f.len = len - sizeof(f.hdr);
	f.reply = mig->buffer + sizeof(f.hdr);
	f.reply_len = f.hdr.flags & FEATURE_GET ? 0 : f.len;
	memcpy(f.reply, f.data, f.len);
	if (!(f.hdr.flags & FEATURE_PROBE)) {
		if (!(f.hdr.flags & FEATURE_GET) == !(f.hdr.flags & FEATURE_SET)) {
			pvr_fail(err, "DEVICE_FEATURE 0x%x, expected GET or SET", f.hdr.flags);
			return -EINVAL;
		}
		ret = run_feature(mig, type, &f, err);
		if (ret) {
			if (!err->text[0])
				pvr_fail(err, "DEVICE_FEATURE 0x%x: %s", f.hdr.flags,
					 strerror(-ret));
			return ret;
		}
	}
	f.hdr.argsz = (uint32_t)(sizeof(f.hdr) + f.reply_len);
	memcpy(mig->buffer, &f.hdr, sizeof(f.hdr));
	*reply = (struct pvr_mig_reply){ mig->buffer, f.hdr.argsz };
	return 0;
}

/* -------------------------------------------------------------------- data */

/* Less than the requested size is the end of the state. */
int pvr_migrate_read(struct pvr_migrate *mig, const void *body, size_t len,
		     struct pvr_mig_reply *reply, struct pvr_error *err)
{
	struct mig_data data;
	size_t done = 0;
	ssize_t n = 0;

	memcpy(&data, body, sizeof(data));
	if (mig->state != PVR_MIGRATE_STOP_COPY) {
		pvr_fail(err, "MIG_DATA_READ in state %s, expected STOP_COPY",
			 state_name(mig->state));
		return -EINVAL;
	}
	if (data.size > PVR_MIG_DATA_MAX || data.argsz < sizeof(data) ||
	    data.argsz - sizeof(data) < data.size) {
		pvr_fail(err, "MIG_DATA_READ of %u bytes with space for %u, expected at most %u",
			 data.size, data.argsz, PVR_MIG_DATA_MAX);
		return -EINVAL;
	}
	if (!pvr_migrate_get_buffer(mig)) {
		pvr_fail(err, "out of memory");
		return -ENOMEM;
	}
	while (done < data.size) {
		n = pvr_save_read(mig->save, mig->buffer + sizeof(data) + done, data.size - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (n < 0) {
		pvr_fail(err, "the state cannot be read: %s", strerror((int)-n));
		return (int)n;
	}
	if (done < data.size)
		mig->is_saved = true;
	data.size = (uint32_t)done;
	data.argsz = (uint32_t)(sizeof(data) + done);
	memcpy(mig->buffer, &data, sizeof(data));
	*reply = (struct pvr_mig_reply){ mig->buffer, data.argsz };
	return 0;
}

int pvr_migrate_write(struct pvr_migrate *mig, const void *body, size_t len,
		      struct pvr_mig_reply *reply, struct pvr_error *err)
{
	struct mig_data data;
	int ret;

	memcpy(&data, body, sizeof(data));
	if (mig->state != PVR_MIGRATE_RESUMING) {
		pvr_fail(err, "MIG_DATA_WRITE in state %s, expected RESUMING",
			 state_name(mig->state));
		return -EINVAL;
	}
	if (data.size != len - sizeof(data)) {
		pvr_fail(err, "MIG_DATA_WRITE of %u bytes with %zu bytes of data", data.size,
			 len - sizeof(data));
		return -EINVAL;
	}
	ret = pvr_adapter_load_push(mig->adapter, (const char *)body + sizeof(data), data.size);
	if (ret)
		pvr_fail(err, "the adapter takes no more state: %s", strerror(-ret));
	*reply = (struct pvr_mig_reply){ NULL, 0 };
	return ret;
}
