// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Bytes from the socket to OpenSSL, a bounded number of TLS records at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/tls_input.h"

void pvr_tls_input_begin(struct pvr_tls_input *input)
{
	input->budget = PVR_TLS_RECORDS_PER_CALL;
	input->has_more = false;
}

/* Return: whether a record ends here. */
static bool take_header(struct pvr_tls_input *input, const uint8_t *data, size_t len, size_t *pos)
{
	size_t n = sizeof(input->header) - input->header_len;

	n = n < len - *pos ? n : len - *pos;
	memcpy(input->header + input->header_len, data + *pos, n);
	input->header_len += n;
	*pos += n;
	if (input->header_len < sizeof(input->header))
		return false;
	input->left = (size_t)input->header[3] << 8 | input->header[4];
	return !input->left;
}

/* Return: as take_header(). */
static bool take_body(struct pvr_tls_input *input, size_t len, size_t *pos)
{
	size_t n = input->left < len - *pos ? input->left : len - *pos;

	input->left -= n;
	*pos += n;
	return !input->left;
}

/* Return: the number of bytes within the budget. */
static size_t count_records(struct pvr_tls_input *input, const uint8_t *data, size_t len)
{
	size_t pos = 0;
	bool over;

	while (pos < len && input->budget) {
		over = input->left ? take_body(input, len, &pos)
				   : take_header(input, data, len, &pos);
		if (!over)
			continue;
		input->header_len = 0;
		input->records++;
		input->budget--;
	}
	return pos;
}

/* Return: false without memory. */
static bool withhold(struct pvr_tls_input *input, const uint8_t *data, size_t len)
{
	if (!len)
		return true;
	input->withheld = malloc(len);
	if (!input->withheld)
		return false;
	memcpy(input->withheld, data, len);
	input->begin = 0;
	input->end = len;
	return true;
}

static ssize_t read_withheld(struct pvr_tls_input *input, uint8_t *data, size_t len)
{
	size_t n = input->end - input->begin;

	n = count_records(input, input->withheld + input->begin, n < len ? n : len);
	memcpy(data, input->withheld + input->begin, n);
	input->begin += n;
	if (input->begin == input->end)
		pvr_tls_input_free(input);
	return (ssize_t)n;
}

static ssize_t read_socket(struct pvr_tls_input *input, int fd, uint8_t *data, size_t len)
{
	ssize_t n = recv(fd, data, len, MSG_DONTWAIT);
	size_t keep;

	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	keep = count_records(input, data, (size_t)n);
	return withhold(input, data + keep, (size_t)n - keep) ? (ssize_t)keep : -ENOMEM;
}

ssize_t pvr_tls_input_read(struct pvr_tls_input *input, int fd, uint8_t *data, size_t len)
{
	if (!input->budget) {
		input->has_more = true;
		return 0;
	}
	return input->withheld ? read_withheld(input, data, len)
			       : read_socket(input, fd, data, len);
}

void pvr_tls_input_free(struct pvr_tls_input *input)
{
	free(input->withheld);
	input->withheld = NULL;
	input->begin = input->end = 0;
}
