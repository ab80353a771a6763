/* blocks.c: which rows are a block, and where they lie. Rows are read again for each block: a
 * caller who changes lengths meanwhile gets other blocks, each checked as a batch is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/session/blocks.h"

#include "runtime/base/tensor.h"

#include <string.h>

#define MOST_WORK (INT64_MAX / 2) /* so that half a row more is a number */

int64_t heddle_blocks_count(const heddle_call_t *call, const heddle_executable_t *executable,
                            int64_t arenaBytes) {
  int64_t most = 0;
  if (executable->row_block <= 0 ||
      __builtin_mul_overflow(executable->row_block, call->thread_count, &most))
    return 1;
  int64_t blocks = arenaBytes / most + (arenaBytes % most > 0);
  int64_t rows = call->symbols[executable->row_symbol];
  blocks = blocks < rows ? blocks : rows;
  return blocks < INT32_MAX ? blocks : INT32_MAX; /* whose square is a number */
}

heddle_blocks_t heddle_blocks_of(heddle_call_t *call, const heddle_executable_t *executable,
                                 const heddle_workspace_t *workspace, const heddle_tensor_t *inputs,
                                 int64_t count) {
  return (heddle_blocks_t){.call = call,
                           .executable = executable,
                           .workspace = workspace,
                           .inputs = inputs,
                           .rows = workspace->symbols[executable->row_symbol],
                           .work = workspace->symbols[executable->row_work],
                           .count = count};
}

/* What comes before row `row` of a tensor; 0 of one without rows. */
static int64_t offsetOf(const heddle_blocks_t *blocks, const heddle_io_t *io, const int64_t *dims,
                        int64_t row) {
  bool hasRows = io->rank > 0 && io->dims[0].symbol == blocks->executable->row_symbol;
  return hasRows ? row * heddle_tensor_bytes(io->dtype, io->rank - 1, dims + 1) : 0;
}

static void pointAt(heddle_blocks_t *blocks, int64_t first, int64_t rows) {
  const heddle_executable_t *executable = blocks->executable;
  const heddle_workspace_t *workspace = blocks->workspace;
  heddle_call_t *call = blocks->call;
  for (int32_t i = 0; i < executable->input_count; ++i) {
    int64_t offset = offsetOf(blocks, &executable->inputs[i], blocks->inputs[i].dims, first);
    const char *data = workspace->inputs[i];
    workspace->rows.inputs[i] = offset ? data + offset : data;
  }
  const int64_t *dims = workspace->output_dims;
  for (int32_t i = 0; i < executable->output_count; dims += executable->outputs[i++].rank) {
    int64_t offset = offsetOf(blocks, &executable->outputs[i], dims, first);
    char *data = workspace->outputs[i];
    workspace->rows.outputs[i] = offset ? data + offset : data;
  }
  memcpy(workspace->rows.symbols, workspace->symbols,
         (size_t)executable->symbol_count * sizeof(int64_t));
  workspace->rows.symbols[executable->row_symbol] = rows;
  call->inputs = workspace->rows.inputs;
  call->outputs = workspace->rows.outputs;
  call->symbols = workspace->rows.symbols;
  call->output_dims = workspace->rows.output_dims;
  executable->bind(call);
}

/* The work at which a part ends: work * part / count, without a product that could overflow. */
static int64_t endOf(const heddle_blocks_t *blocks, int64_t part) {
  return blocks->work / blocks->count * part + blocks->work % blocks->count * part / blocks->count;
}

bool heddle_blocks_next(heddle_blocks_t *blocks) {
  heddle_call_t *call = blocks->call;
  int64_t first = blocks->next;
  if (first == blocks->rows)
    return false;
  do
    ++blocks->part;
  while (blocks->part < blocks->count && endOf(blocks, blocks->part) <= blocks->done);
  bool isLast = blocks->part >= blocks->count;
  int64_t end = isLast ? blocks->work : endOf(blocks, blocks->part);
  for (; blocks->next < blocks->rows; ++blocks->next) {
    pointAt(blocks, blocks->next, 1);
    int64_t work = call->symbols[blocks->executable->row_work];
    bool isNearer = blocks->done + (work - work / 2) <= end; /* to the end with the row */
    if (call->status || (blocks->next > first && !isLast && !isNearer))
      break;
    if (__builtin_add_overflow(blocks->done, work, &blocks->done) || blocks->done > MOST_WORK)
      blocks->done = MOST_WORK;
  }
  pointAt(blocks, first, blocks->next - first);
  return call->status == 0;
}
