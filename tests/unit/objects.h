/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What tests of commands share: objects to name, requests with a wrong member, SRQ pairs. */
#ifndef UNIT_OBJECTS_H
#define UNIT_OBJECTS_H

#include "ends.h"

/* Objects of the first guest's kernel context. */
struct objects {
	struct t_env *env;
	struct fg_guest *g;
	struct fg_pd pd;
	struct fg_cq cq;
	struct fg_buf buf; /* 32 pages that no object uses */
	struct fg_qp_spec qp; /* RC, of pd and cq */
};
void objects_init(struct objects *o, struct t_env *env);
#define TEST_OBJECTS(name) TEST_OBJECT(guest, struct objects, o, objects_init, name)
#define TEST_OBJECTS_CASES(name, rows) \
	TEST_OBJECT_CASES(guest, struct objects, o, objects_init, name, rows)

/* A member of a request or of attributes, and the value that a test stores there. */
struct t_member {
	size_t offset, size;
	uint64_t value;
};
#define T_MEMBER(type, member, val)                                      \
	{                                                                \
		offsetof(type, member), sizeof(((type *)0)->member), val \
	}
/* Stores nothing for a member of size 0. */
void t_store(void *object, const struct t_member *member);

/* Bus addresses that name no page of RAM, as rows of TEST_CASES(), too. */
#define T_BAD_GPAS 6
extern const struct t_bad_gpa {
	const char *label;
	uint64_t gpa;
} t_bad_gpa[T_BAD_GPAS];
/*
 * while (t_next_bad_page(&bad)) { ... }: the body runs with each bad address in *@pdir_dma, then in
 * each of the first @npages entries of @buf's page table. All are restored.
 */
struct t_bad_page {
	struct fg_buf *buf;
	uint32_t npages;
	__u64 *pdir_dma;
	/* State, 0 at first. */
	uint32_t n;
	void *place;
	uint64_t good;
};
bool t_next_bad_page(struct t_bad_page *bad);

/*
 * while (t_use_up(&use, create(&handle), &handle)): creates objects until the device refuses one,
 * destroys one, creates another in its place, and destroys all.
 */
struct t_use_up {
	struct fg_guest *guest;
	uint32_t max; /* handles, and so objects, that the device may give */
	enum pvr_cmd destroy;
	/* State, 0 at first. */
	uint32_t *handle, n;
	bool again;
};
bool t_use_up(struct t_use_up *use, uint32_t err, const uint32_t *handle);

#define SRQ_WR 32

/* Connected RC ends; b receives through an SRQ of SRQ_WR requests of 4 SGEs. */
struct srq_pair {
	struct t_env *env;
	struct fg_srq srq;
	struct fg_end *a, *b;
	struct fg_buf buf; /* 4 pages of b's guest that no object uses */
};
void srq_pair_init(struct srq_pair *s, struct t_env *env);
/* Gives b a new QP with a new SRQ on @pd and connects. */
void srq_pair_use(struct srq_pair *s, struct fg_pd *pd);
#define TEST_SRQ(name) TEST_OBJECT(guests, struct srq_pair, s, srq_pair_init, name)
#define TEST_SRQ_CASES(name, rows) \
	TEST_OBJECT_CASES(guests, struct srq_pair, s, srq_pair_init, name, rows)

/* Gives the device a DSR that it must refuse; afterwards it accepts a good one. */
void t_dsr_refused(struct fg_guest *g, uint64_t gpa);
/* Runs the device after the change. */
void t_set_link(struct fg_guest *g, bool up);
/* The device executes commands, or refuses them. */
void t_commands_work(struct fg_guest *g);
void t_commands_refused(struct fg_guest *g);

#endif /* UNIT_OBJECTS_H */
