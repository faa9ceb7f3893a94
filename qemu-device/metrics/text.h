/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The text format of Prometheus, version 0.0.4: families, labels, samples. */
#ifndef PVR_METRICS_TEXT_H
#define PVR_METRICS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text that grows; all zeros: empty. */
struct pvr_metrics_text {
	char *data; /* malloc(); not terminated by NUL */
	size_t len, size;
	bool failed; /* no memory: the text is incomplete */
};

/* Bytes of the labels of one sample: three names of 63 bytes, each escaped, and their keys. */
#define PVR_METRICS_LABELS 512

/*
 * Write one or two labels, such as adapter="vm1",fabric="default". Values are escaped, and are UTF-8
 * afterwards. A label that does not fit is left out. Return: @buf.
 */
const char *pvr_metrics_label(char buf[PVR_METRICS_LABELS], const char *name, const char *value);
const char *pvr_metrics_labels(char buf[PVR_METRICS_LABELS], const char *name, const char *value,
			       const char *name2, const char *value2);

/* The head of a family. @type: "counter" or "gauge". */
void pvr_metrics_head(struct pvr_metrics_text *text, const char *name, const char *type,
		      const char *help);

/* A sample. @labels and @more come from pvr_metrics_label(); either may be NULL. */
void pvr_metrics_sample(struct pvr_metrics_text *text, const char *name, const char *labels,
			const char *more, uint64_t value);
/* The same for a time in ns. The sample is in seconds. */
void pvr_metrics_sample_ns(struct pvr_metrics_text *text, const char *name, const char *labels,
			   const char *more, uint64_t ns);

/* A family of one sample without labels. */
void pvr_metrics_counter(struct pvr_metrics_text *text, const char *name, const char *help,
			 uint64_t value);
void pvr_metrics_gauge(struct pvr_metrics_text *text, const char *name, const char *help,
		       uint64_t value);

void pvr_metrics_text_free(struct pvr_metrics_text *text);

#endif /* PVR_METRICS_TEXT_H */
