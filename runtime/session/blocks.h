/* blocks.h: a batch whose rows do not depend on one another, as blocks of rows that a program runs
 * one after the other (heddle_executable_t.row_block). SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_SESSION_BLOCKS_H
#define HEDDLE_SESSION_BLOCKS_H

#include "runtime/session/session.h"

typedef struct heddle_blocks {
  heddle_call_t *call;
  const heddle_executable_t *executable;
  const heddle_workspace_t *workspace;
  const heddle_tensor_t *inputs;
  int64_t rows, next; /* those of the batch; the first that no block has had */
  int64_t work, done; /* of all rows; of those before `next` */
  int64_t count, part;
} heddle_blocks_t;

/* Into how many blocks a batch is cut whose symbols the call has, and which as a whole needs so
 * large an arena. */
int64_t heddle_blocks_count(const heddle_call_t *call, const heddle_executable_t *executable,
                            int64_t arena_bytes);

/* At most `count` blocks of about equal work, of a call that is ready to run as a whole. */
heddle_blocks_t heddle_blocks_of(heddle_call_t *call, const heddle_executable_t *executable,
                                 const heddle_workspace_t *workspace, const heddle_tensor_t *inputs,
                                 int64_t count);

/* Points the call at the next block: inputs, outputs, symbols and room for the dims of its outputs.
 * False after the last one, and if the call has failed. */
bool heddle_blocks_next(heddle_blocks_t *blocks);
#endif
