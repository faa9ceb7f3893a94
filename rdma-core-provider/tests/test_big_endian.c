// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The plain requests of post.c, compiled for a CPU of the other byte order. The numbers of the
 * device are little-endian; sparse does not see copies of bytes, which are not converted.
 */
#include <byteswap.h>
#include <endian.h>

#undef __BYTE_ORDER
#define __BYTE_ORDER __BIG_ENDIAN
#undef htole16
#undef htole32
#undef htole64
#undef le16toh
#undef le32toh
#undef le64toh
#define htole16(x) bswap_16(x)
#define htole32(x) bswap_32(x)
#define htole64(x) bswap_64(x)
#define le16toh(x) bswap_16(x)
#define le32toh(x) bswap_32(x)
#define le64toh(x) bswap_64(x)

/* The other objects have these, for the CPU of the test. */
#define pvr_ring_sq big_ring_sq
#define pvr_post_recv big_post_recv
#define pvr_post_send big_post_send
#define pvr_post_srq_recv big_post_srq_recv
#include "post.c"

#include "test.h"

static struct {
	struct pvr_sq_wqe hdr;
	struct pvr_sge sge;
} wqe;

static struct ibv_sge sge = { .addr = 0x1122334455667788, .length = 0x1020304, .lkey = 0xa0b0c0d };

static void write_wqe(enum ibv_wr_opcode opcode)
{
	const struct ibv_send_wr wr = {
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = 0x123456789abcdef0, .rkey = 0x55667788 },
	};

	memset(&wqe, 0xff, sizeof(wqe));
	write_plain(&wqe.hdr, 7, &wr, false);
}

TEST_PLAIN(test_numbers_of_a_plain_request_are_little_endian)
{
	write_wqe(IBV_WR_RDMA_WRITE);
	assert_int_equal(wqe.hdr.wr_id, bswap_64(7));
	assert_int_equal(wqe.hdr.num_sge, bswap_32(1));
	assert_int_equal(wqe.hdr.opcode, bswap_32(IBV_WR_RDMA_WRITE));
	assert_int_equal(wqe.hdr.send_flags, bswap_32(IBV_SEND_SIGNALED));
	assert_int_equal(wqe.hdr.wr.rdma.remote_addr, bswap_64(0x123456789abcdef0));
	write_wqe(IBV_WR_SEND);
	assert_int_equal(wqe.hdr.opcode, bswap_32(IBV_WR_SEND));
	assert_int_equal(wqe.hdr.wr.rdma.remote_addr, 0);
}

TEST_PLAIN(test_numbers_of_a_plain_sge_are_little_endian)
{
	write_wqe(IBV_WR_RDMA_WRITE);
	assert_int_equal(wqe.sge.addr, bswap_64(sge.addr));
	assert_int_equal(wqe.sge.length, bswap_32(sge.length));
	assert_int_equal(wqe.sge.lkey, bswap_32(sge.lkey));
}
