// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: rules, and the random numbers of a queue pair. */
#include "fault/rule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PPM 1000000u
#define DELAY_MAX_NS 60000000000ull
#define RATE_MIN 1000ull /* bit/s */
#define RATE_MAX 1000000000000ull
#define BURST_NS 100000u
#define KINDS                                                                           \
	"drop, delay, reorder, duplicate, corrupt, rate, rnr, nak, error, recv-error, " \
	"port-down, cq-overflow and stall"
#define CORRUPT_MIN 1e-15
#define CORRUPT_MAX 0.01
#define LENGTH_MAX (1ull << 31) /* of a message */
/* The kinds with rule->after. */
#define WITH_AFTER                                                                          \
	(1u << PVR_FAULT_ERROR | 1u << PVR_FAULT_RECV_ERROR | 1u << PVR_FAULT_CQ_OVERFLOW | \
	 1u << PVR_FAULT_PORT_DOWN | 1u << PVR_FAULT_STALL)

/* ------------------------------------------------------------------------- values */

static bool set_name(char *name, const char *key, const char *value, struct pvr_error *err)
{
	size_t len = strlen(value);

	if (!len || len >= PVR_FAULT_NAME_MAX)
		return pvr_fail(err, "%s '%.64s' is not a name of 1 to %d characters", key, value,
				PVR_FAULT_NAME_MAX - 1);
	memcpy(name, value, len + 1);
	return true;
}

/* Decimal digits only: no sign, no space. */
static bool read_number(const char *text, const char **end, uint64_t *number)
{
	char *stop;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &stop, 10);
	*end = stop;
	return !errno;
}

static bool set_fabric(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	return set_name(rule->match.fabric, "fabric", value, err);
}

static bool set_from(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	return set_name(rule->match.from, "from", value, err);
}

static bool set_to(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	return set_name(rule->match.to, "to", value, err);
}

static bool set_qp(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	const char *end;
	uint64_t qpn;

	if (!read_number(value, &end, &qpn) || *end || !qpn || qpn > 0xffffff)
		return pvr_fail(err, "qp '%.64s' is not a number from 1 to %u", value, 0xffffffu);
	rule->match.qpn = (uint32_t)qpn;
	return true;
}

static bool set_seed(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	const char *end;

	if (!read_number(value, &end, &rule->seed) || *end)
		return pvr_fail(err, "seed '%.64s' is not a number", value);
	return true;
}

/* A percentage with at most four decimals. */
static bool read_percent(const char *text, uint32_t *ppm)
{
	uint64_t whole, digit = PPM / 1000;

	if (!read_number(text, &text, &whole) || whole > 100)
		return false;
	*ppm = (uint32_t)whole * (PPM / 100);
	if (*text == '.') {
		if (text[1] < '0' || text[1] > '9')
			return false;
		for (text++; *text >= '0' && *text <= '9' && digit; text++, digit /= 10)
			*ppm += (uint32_t)((uint64_t)(*text - '0') * digit);
	}
	return !strcmp(text, "%") && *ppm && *ppm <= PPM;
}

static bool set_percent(uint32_t *ppm, const char *key, const char *value, struct pvr_error *err)
{
	return read_percent(value, ppm) ||
	       pvr_fail(err, "%s '%.64s' is not a percentage from 0.0001%% to 100%%", key, value);
}

static bool set_drop(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	return set_percent(&rule->drop_ppm, "drop", value, err);
}

static bool set_reorder(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	return set_percent(&rule->reorder_ppm, "reorder", value, err);
}

static bool set_duplicate(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	return set_percent(&rule->duplicate_ppm, "duplicate", value, err);
}

static bool read_time(const char *text, const char **end, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	uint64_t number;
	size_t i, len;

	if (!read_number(text, &text, &number))
		return false;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		len = strlen(units[i].name);
		if (strncmp(text, units[i].name, len))
			continue;
		if (number > DELAY_MAX_NS / units[i].ns)
			return false;
		*ns = number * units[i].ns;
		*end = text + len;
		return true;
	}
	return false;
}

/* The separator before the jitter. */
static size_t plus_minus(const char *text)
{
	static const char *const signs[] = { "±", "+-" };
	size_t i;

	for (i = 0; i < 2; i++)
		if (!strncmp(text, signs[i], strlen(signs[i])))
			return strlen(signs[i]);
	return 0;
}

static bool set_delay(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	const char *end = value;
	bool ok = read_time(value, &end, &rule->delay_ns) && rule->delay_ns;
	size_t sign = ok ? plus_minus(end) : 0;

	if (sign)
		ok = read_time(end + sign, &end, &rule->jitter_ns);
	if (!ok || *end)
		return pvr_fail(err,
				"delay '%.64s' is not a time of up to 60s, such as 5ms, 100us or "
				"5ms+-2ms",
				value);
	if (rule->jitter_ns > rule->delay_ns)
		return pvr_fail(err, "delay '%.64s': the variation is longer than the delay",
				value);
	return true;
}

/* The statuses that a rule can give to a request. Those of the first block have consequences. */
static const struct {
	const char *name;
	uint16_t status;
	bool recv; /* also of a receive request */
} statuses[] = {
	{ "LOC_LEN_ERR", PVRDMA_WC_LOC_LEN_ERR, true },
	{ "LOC_QP_OP_ERR", PVRDMA_WC_LOC_QP_OP_ERR, true },
	{ "LOC_PROT_ERR", PVRDMA_WC_LOC_PROT_ERR, true },
	{ "REM_INV_REQ_ERR", PVRDMA_WC_REM_INV_REQ_ERR, false },
	{ "REM_ACCESS_ERR", PVRDMA_WC_REM_ACCESS_ERR, false },
	{ "REM_OP_ERR", PVRDMA_WC_REM_OP_ERR, false },
	{ "RETRY_EXC_ERR", PVRDMA_WC_RETRY_EXC_ERR, false },
	{ "RNR_RETRY_EXC_ERR", PVRDMA_WC_RNR_RETRY_EXC_ERR, false },
	{ "GENERAL_ERR", PVRDMA_WC_GENERAL_ERR, true },

	{ "LOC_EEC_OP_ERR", PVRDMA_WC_LOC_EEC_OP_ERR, false },
	{ "MW_BIND_ERR", PVRDMA_WC_MW_BIND_ERR, false },
	{ "BAD_RESP_ERR", PVRDMA_WC_BAD_RESP_ERR, false },
	{ "LOC_ACCESS_ERR", PVRDMA_WC_LOC_ACCESS_ERR, true },
	{ "LOC_RDD_VIOL_ERR", PVRDMA_WC_LOC_RDD_VIOL_ERR, false },
	{ "REM_INV_RD_REQ_ERR", PVRDMA_WC_REM_INV_RD_REQ_ERR, false },
	{ "REM_ABORT_ERR", PVRDMA_WC_REM_ABORT_ERR, false },
	{ "INV_EECN_ERR", PVRDMA_WC_INV_EECN_ERR, false },
	{ "INV_EEC_STATE_ERR", PVRDMA_WC_INV_EEC_STATE_ERR, false },
	{ "FATAL_ERR", PVRDMA_WC_FATAL_ERR, true },
	{ "RESP_TIMEOUT_ERR", PVRDMA_WC_RESP_TIMEOUT_ERR, false },
};

/* Return: the status of the first @len characters, or 0. */
static uint16_t find_status(const char *name, size_t len, bool recv)
{
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (strlen(statuses[i].name) == len && !strncmp(name, statuses[i].name, len) &&
		    (statuses[i].recv || !recv))
			return statuses[i].status;
	return 0;
}

/* "", or ",after=" and a number. */
static bool read_after(struct pvr_fault_rule *rule, const char *text)
{
	static const char after[] = ",after=";

	if (!*text)
		return true;
	return !strncmp(text, after, sizeof(after) - 1) &&
	       read_number(text + sizeof(after) - 1, &text, &rule->after) && !*text;
}

static bool set_error(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	size_t len = strcspn(value, ",");

	if (rule->status)
		return pvr_fail(err, "error and this nak both end the connection: give one");
	rule->status = find_status(value, len, false);
	if (!rule->status)
		return pvr_fail(err,
				"error '%.*s' is no status of a send request, such as "
				"REM_ACCESS_ERR: pvrdmactl(8) lists them",
				len < 64 ? (int)len : 64, value);
	return read_after(rule, value + len) ||
	       pvr_fail(err, "error '%.64s' is not STATUS or STATUS,after=NUMBER", value);
}

static bool set_recv_error(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	size_t len = strcspn(value, ",");

	rule->recv_status = find_status(value, len, true);
	if (!rule->recv_status)
		return pvr_fail(err,
				"recv-error '%.*s' is none of LOC_LEN_ERR, LOC_QP_OP_ERR, "
				"LOC_PROT_ERR, LOC_ACCESS_ERR, GENERAL_ERR, FATAL_ERR",
				len < 64 ? (int)len : 64, value);
	return read_after(rule, value + len) ||
	       pvr_fail(err, "recv-error '%.64s' is not STATUS or STATUS,after=NUMBER", value);
}

static bool set_rnr(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	static const char every[] = "every:";
	const char *end = value;

	rule->rnr_always = !strcmp(value, "always");
	if (rule->rnr_always)
		return true;
	if (strncmp(value, every, sizeof(every) - 1) != 0 ||
	    !read_number(value + sizeof(every) - 1, &end, &rule->rnr_every) || *end ||
	    !rule->rnr_every)
		return pvr_fail(err, "rnr '%.64s' is neither every:NUMBER nor always", value);
	return true;
}

/* These NAKs end the connection: the rule is that of an error. */
static const struct {
	const char *name;
	uint16_t status;
} fatal_naks[] = {
	{ "invalid-request", PVRDMA_WC_REM_INV_REQ_ERR },
	{ "remote-access", PVRDMA_WC_REM_ACCESS_ERR },
	{ "remote-operational", PVRDMA_WC_REM_OP_ERR },
};

static bool set_fatal_nak(struct pvr_fault_rule *rule, uint16_t status, const char *value,
			  struct pvr_error *err)
{
	if (rule->status)
		return pvr_fail(err, "error and this nak both end the connection: give one");
	rule->status = status;
	rule->kinds ^= 1u << PVR_FAULT_NAK | 1u << PVR_FAULT_ERROR;
	return read_after(rule, value + strcspn(value, ",")) ||
	       pvr_fail(err, "nak '%.64s' is not KIND or KIND,after=NUMBER", value);
}

static bool set_nak(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	static const char every[] = "sequence,every=";
	size_t len = strcspn(value, ","), i;
	const char *end = value;

	rule->nak_always = !strcmp(value, "sequence");
	if (rule->nak_always)
		return true;
	for (i = 0; i < sizeof(fatal_naks) / sizeof(fatal_naks[0]); i++)
		if (strlen(fatal_naks[i].name) == len && !strncmp(value, fatal_naks[i].name, len))
			return set_fatal_nak(rule, fatal_naks[i].status, value, err);
	if (strncmp(value, every, sizeof(every) - 1) != 0 ||
	    !read_number(value + sizeof(every) - 1, &end, &rule->nak_every) || *end ||
	    !rule->nak_every)
		return pvr_fail(err,
				"nak '%.64s' is none of sequence, sequence,every=NUMBER, "
				"invalid-request, remote-access, remote-operational",
				value);
	return true;
}

static bool set_rate(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	static const struct {
		const char *name;
		uint64_t bits;
	} units[] = { { "kbit", 1000 }, { "Mbit", 1000000 }, { "Gbit", 1000000000 } };
	uint64_t number, bits = 0;
	const char *end = value;
	size_t i;

	if (read_number(value, &end, &number))
		for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
			if (!strcmp(end, units[i].name))
				bits = units[i].bits;
	if (!bits || number < RATE_MIN / bits + (RATE_MIN % bits != 0) || number > RATE_MAX / bits)
		return pvr_fail(err,
				"rate '%.64s' is not a number with kbit, Mbit or Gbit, from 1kbit "
				"to 1000Gbit",
				value);
	rule->rate = number * bits;
	return true;
}

static bool set_cq_overflow(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	static const char after[] = "after:";
	const char *end = value;

	if (strncmp(value, after, sizeof(after) - 1) != 0 ||
	    !read_number(value + sizeof(after) - 1, &end, &rule->after) || *end)
		return pvr_fail(err, "cq-overflow '%.64s' is not after:NUMBER", value);
	return true;
}

static bool set_port_down(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	const char *end = value;

	return (read_time(value, &end, &rule->port_down_ns) && rule->port_down_ns &&
		read_after(rule, end)) ||
	       pvr_fail(err,
			"port-down '%.64s' is not TIME or TIME,after=NUMBER, with a time of up to "
			"60s, such as 2s or 100ms",
			value);
}

/* A probability as a decimal number, with or without an exponent. */
static bool set_corrupt(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	char *end;

	rule->corrupt = strtod(value, &end);
	if (!*value || strspn(value, "0123456789.e-") != strlen(value) || *end ||
	    !(rule->corrupt >= CORRUPT_MIN && rule->corrupt <= CORRUPT_MAX))
		return pvr_fail(err,
				"corrupt '%.64s' is not the probability of a bit error, from 1e-15 "
				"to 0.01, such as 1e-6",
				value);
	return true;
}

static bool set_stall(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err)
{
	size_t len = strcspn(value, ",");

	return (len == strlen("peer") && !strncmp(value, "peer", len) &&
		read_after(rule, value + len)) ||
	       pvr_fail(err, "stall '%.64s' is neither peer nor peer,after=NUMBER", value);
}

/* -------------------------------------------------------------------------- words */

static const struct {
	const char *name;
	bool (*set)(struct pvr_fault_rule *rule, const char *value, struct pvr_error *err);
	uint32_t kind; /* a bit of rule->kinds, or 0 */
} keys[] = {
	{ "fabric", set_fabric, 0 },
	{ "from", set_from, 0 },
	{ "to", set_to, 0 },
	{ "qp", set_qp, 0 },
	{ "seed", set_seed, 0 },
	{ "drop", set_drop, 1u << PVR_FAULT_DROP },
	{ "delay", set_delay, 1u << PVR_FAULT_DELAY },
	{ "error", set_error, 1u << PVR_FAULT_ERROR },
	{ "recv-error", set_recv_error, 1u << PVR_FAULT_RECV_ERROR },
	{ "rnr", set_rnr, 1u << PVR_FAULT_RNR },
	{ "nak", set_nak, 1u << PVR_FAULT_NAK },
	{ "rate", set_rate, 1u << PVR_FAULT_RATE },
	{ "reorder", set_reorder, 1u << PVR_FAULT_REORDER },
	{ "duplicate", set_duplicate, 1u << PVR_FAULT_DUPLICATE },
	{ "corrupt", set_corrupt, 1u << PVR_FAULT_CORRUPT },
	{ "port-down", set_port_down, 1u << PVR_FAULT_PORT_DOWN },
	{ "cq-overflow", set_cq_overflow, 1u << PVR_FAULT_CQ_OVERFLOW },
	{ "stall", set_stall, 1u << PVR_FAULT_STALL },
};

/* @seen: bits of the keys of earlier words */
static bool set_word(struct pvr_fault_rule *rule, char *word, uint32_t *seen, struct pvr_error *err)
{
	char *value = strchr(word, '=');
	size_t i;

	if (!value)
		return pvr_fail(err, "'%.64s' is not KEY=VALUE", word);
	*value++ = '\0';
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(word, keys[i].name))
			continue;
		if (*seen >> i & 1)
			return pvr_fail(err, "%s is given twice", word);
		*seen |= 1u << i;
		rule->kinds |= keys[i].kind;
		return keys[i].set(rule, value, err);
	}
	return pvr_fail(err, "unknown word '%.64s': there are fabric, from, to, qp, seed, " KINDS,
			word);
}

static bool check(const struct pvr_fault_rule *rule, struct pvr_error *err)
{
	const uint32_t drop = 1u << PVR_FAULT_DROP;
	const uint32_t with_after = rule->kinds & WITH_AFTER;

	if (!rule->kinds)
		return pvr_fail(err, "no fault is given: there are " KINDS);
	if (rule->match.qpn && !rule->match.from[0])
		return pvr_fail(err, "qp needs from: each adapter has queue pairs of its own");
	if (rule->drop_ppm == PPM && rule->kinds != drop)
		return pvr_fail(err, "drop=100%% leaves no message for the other faults");
	if (rule->nak_always && rule->kinds != 1u << PVR_FAULT_NAK)
		return pvr_fail(err, "nak=sequence leaves no message for the other faults: "
				     "give nak=sequence,every=NUMBER");
	if (with_after & (with_after - 1))
		return pvr_fail(err, "of error, recv-error, cq-overflow, port-down and stall a "
				     "fault has one: "
				     "add another fault");
	return true;
}

bool pvr_fault_parse(struct pvr_fault_rule *rule, const char *text, struct pvr_error *err)
{
	char copy[PVR_FAULT_TEXT_MAX], *rest = copy, *word;
	uint32_t seen = 0;

	*rule = (struct pvr_fault_rule){ .seed = 1 };
	if (strlen(text) >= sizeof(copy))
		return pvr_fail(err, "the fault has %zu characters, the limit is %zu", strlen(text),
				sizeof(copy) - 1);
	strcpy(copy, text);
	strcpy(rule->text, text);
	while ((word = strtok_r(rest, " \t", &rest)))
		if (!set_word(rule, word, &seen, err))
			return false;
	return check(rule, err);
}

/* ------------------------------------------------------------------------ matching */

static bool name_matches(const char *rule, const char *name)
{
	return !*rule || !strcmp(rule, name);
}

bool pvr_fault_matches(const struct pvr_fault_match *rule, const struct pvr_fault_match *message)
{
	return name_matches(rule->fabric, message->fabric) &&
	       name_matches(rule->from, message->from) && name_matches(rule->to, message->to) &&
	       (!rule->qpn || rule->qpn == message->qpn);
}

bool pvr_fault_match_equal(const struct pvr_fault_match *a, const struct pvr_fault_match *b)
{
	return !strcmp(a->fabric, b->fabric) && !strcmp(a->from, b->from) &&
	       !strcmp(a->to, b->to) && a->qpn == b->qpn;
}

/* ------------------------------------------------------------------ random numbers */

/* The generator "splitmix64": each state gives a sequence of full period. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* The kinds are mixed in: rules with the same seed have independent numbers. */
void pvr_fault_state_init(struct pvr_fault_state *state, const struct pvr_fault_rule *rule,
			  uint32_t qpn)
{
	state->random = rule->seed ^ (uint64_t)qpn << 32 ^ (uint64_t)rule->kinds << 56 ^
			(uint64_t)(rule->kinds >> 8) << 24;
	state->messages = 0;
	state->recvs = 0;
	state->requests = 0;
	state->intact = 0;
	state->free_at = 0;
	(void)next_random(&state->random);
}

bool pvr_fault_is_due(struct pvr_fault_state *state, const struct pvr_fault_rule *rule)
{
	uint64_t before = state->messages++;

	if (rule->kinds & 1u << PVR_FAULT_PORT_DOWN)
		return before == rule->after;
	return before >= rule->after && rule->kinds & WITH_AFTER;
}

bool pvr_fault_happens(struct pvr_fault_state *state, uint32_t ppm)
{
	if (!ppm)
		return false;
	return (next_random(&state->random) >> 32) * PPM >> 32 < ppm;
}

bool pvr_fault_drops(struct pvr_fault_state *state, const struct pvr_fault_rule *rule)
{
	return pvr_fault_happens(state, rule->drop_ppm);
}

uint64_t pvr_fault_delay(struct pvr_fault_state *state, const struct pvr_fault_rule *rule)
{
	uint64_t low = rule->delay_ns - rule->jitter_ns;

	if (!rule->jitter_ns)
		return rule->delay_ns;
	return low + next_random(&state->random) % (2 * rule->jitter_ns + 1);
}

bool pvr_fault_rnr(struct pvr_fault_state *state, const struct pvr_fault_rule *rule)
{
	if (rule->rnr_always)
		return true;
	return rule->rnr_every && ++state->recvs % rule->rnr_every == 0;
}

bool pvr_fault_seq_nak(struct pvr_fault_state *state, const struct pvr_fault_rule *rule)
{
	if (rule->nak_always)
		return true;
	return rule->nak_every && ++state->requests % rule->nak_every == 0;
}

uint64_t pvr_fault_rate(struct pvr_fault_state *state, const struct pvr_fault_rule *rule,
			uint64_t now, uint64_t length)
{
	uint64_t start = state->free_at > now ? state->free_at : now;

	if (!rule->rate)
		return 0;
	if (length > LENGTH_MAX)
		length = LENGTH_MAX;
	state->free_at = start + length * 8 * 1000000000 / rule->rate;
	return start - now > BURST_NS ? start : 0;
}

/*
 * The distance from one inverted bit to the next has a geometric distribution, so the work
 * depends on their number, not on the length of the message.
 */
static uint64_t next_distance(struct pvr_fault_state *state, double probability)
{
	/* In (0, 1): 53 random bits and a half. */
	double uniform = ((double)(next_random(&state->random) >> 11) + 0.5) * 0x1p-53;

	return (uint64_t)(log(uniform) / log1p(-probability));
}

uint32_t pvr_fault_corrupt(struct pvr_fault_state *state, const struct pvr_fault_rule *rule,
			   uint64_t bits, uint64_t *at, uint32_t max)
{
	uint64_t done = 0;
	uint32_t num = 0;

	if (!rule->corrupt)
		return 0;
	/* @intact is 1 more than the distance, so that 0 is a state that has none yet. */
	if (!state->intact)
		state->intact = 1 + next_distance(state, rule->corrupt);
	while (state->intact <= bits - done && num < max) {
		done += state->intact;
		at[num++] = done - 1;
		state->intact = 1 + next_distance(state, rule->corrupt);
	}
	if (state->intact > bits - done)
		state->intact -= bits - done;
	return num;
}
