/* stream.h: what runs ask of the devices of a module. Each workspace has a stream of each device,
 * in which all is done in the order in which it is asked, an arena, and memory that only grows, so
 * that runs of sizes as before allocate nothing. SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_DEVICE_STREAM_H
#define HEDDLE_DEVICE_STREAM_H

#include "runtime/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of one workspace: used by one run at a time, on its thread. */
typedef struct heddle_streams heddle_streams_t;

/* Begins a run with an arena of so many bytes on each device. *streams is NULL before the first. */
heddle_status_t *heddle_streams_begin(heddle_devices_t *devices, const int64_t *arena_bytes,
                                      heddle_streams_t **streams);

/* The services HEDDLE_SERVICE_DEVICE_*. False: the run has failed, see below; nothing more is to be
 * asked of it but its end. */
bool heddle_streams_area(heddle_streams_t *streams, int64_t *frame);
bool heddle_streams_allocate(heddle_streams_t *streams, int64_t *frame);
bool heddle_streams_copy(heddle_streams_t *streams, int64_t *frame);
bool heddle_streams_launch(heddle_streams_t *streams, int64_t *frame);

/* Waits for all that was asked. */
bool heddle_streams_wait(heddle_streams_t *streams);
/* Waits, also for a run that has failed, and takes back what the run allocated. */
bool heddle_streams_end(heddle_streams_t *streams);

/* Why the run has failed: what a kernel has reported, with status 0 where none has; and what the
 * driver says, which the caller destroys. */
heddle_device_failure_t heddle_streams_failure(const heddle_streams_t *streams);
heddle_status_t *heddle_streams_take_status(heddle_streams_t *streams);

/* Bytes of the devices that are held. NULL: 0. */
int64_t heddle_streams_bytes(const heddle_streams_t *streams);
void heddle_streams_destroy(heddle_streams_t *streams);

#ifdef __cplusplus
}
#endif
#endif
