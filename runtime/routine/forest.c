/* forest.c: the leaves that rows reach in decision trees. Features become integers of the same
 * order first, a second set of them with NaN as the smallest where a node wants that.
 *
 * Of a small tree all conditions are asked, of many rows at once, and close the leaves that a row
 * cannot reach (scan.h). Else rows walk down: each step is two loads and a comparison without a
 * branch, and several trees are walked at once, so that their loads overlap. Either way a row's
 * result is the same, bit by bit. SPDX-License-Identifier: Apache-2.0 */
#include "heddle/runtime.h"
#include "runtime/routine/key.h"
#include "runtime/routine/scan.h"

#include <string.h>

#define HIGHEST __builtin_inf()

/* LEAST_ROWS: fewer are walked. */
enum { TOGETHER = 8, NODES_IN_CACHE = 1024, BLOCK_ROWS = 128, BATCH_TREES = 32, LEAST_ROWS = 4 };

/* Goes to `child` where the key of the feature is at most the limit, else to the node after it. A
 * leaf's limit is the largest of all and its child itself. */
typedef struct node {
  int64_t limit;
  int32_t feature, child;
} node_t;

typedef struct forest {
  heddle_view_t result, x;
  const node_t *nodes;
  const int64_t *roots; /* [trees, 2]: the root, and how high its tree is */
  const void *weights;  /* [nodes, targets] */
  int64_t features, trees, targets, combine;
  bool wantsSmallest;   /* some node takes NaN as the smallest: feature number + features */
  const int32_t *scans; /* of all trees, or NULL */
  bool allScanned;
} forest_t;

static void keysOf(const forest_t *op, int64_t row, int64_t *keys) {
  int64_t sign = op->x.dtype == HEDDLE_FLOAT64 ? INT64_MIN : INT64_C(1) << 31;
  const char *from = (const char *)op->x.data;
  for (int64_t i = 0; i < op->features; ++i) {
    int64_t at = row * op->features + i;
    uint64_t key =
        sign < 0 ? heddle_key(from, op->x.dtype, at) : heddle_key_f32(((const uint32_t *)from)[at]);
    bool isNan = heddle_key_is_nan(op->x.dtype, key);
    int64_t number = sign < 0 ? (int64_t)(key ^ (uint64_t)sign) : (int64_t)key - sign;
    keys[i] = isNan ? INT64_MAX : number;
    if (op->wantsSmallest)
      keys[op->features + i] = isNan ? INT64_MIN : number;
  }
}

static inline int64_t stepFrom(const node_t *nodes, const int64_t *keys, int64_t at) {
  const node_t *node = nodes + at;
  return node->child + (keys[node->feature] > node->limit);
}

/* Down `count` trees at once: from nodes to the leaves that a row reaches. `height`: of the
 * highest. */
static void walk(const forest_t *op, const int64_t *keys, int64_t height, int64_t count,
                 int64_t *leaves) {
  if (count == TOGETHER) {
    int64_t a = leaves[0], b = leaves[1], c = leaves[2], d = leaves[3], e = leaves[4],
            f = leaves[5], g = leaves[6], h = leaves[7];
    for (int64_t depth = 0; depth < height; ++depth) {
      a = stepFrom(op->nodes, keys, a);
      b = stepFrom(op->nodes, keys, b);
      c = stepFrom(op->nodes, keys, c);
      d = stepFrom(op->nodes, keys, d);
      e = stepFrom(op->nodes, keys, e);
      f = stepFrom(op->nodes, keys, f);
      g = stepFrom(op->nodes, keys, g);
      h = stepFrom(op->nodes, keys, h);
    }
    int64_t found[TOGETHER] = {a, b, c, d, e, f, g, h};
    memcpy(leaves, found, sizeof found);
    return;
  }
  for (int64_t depth = 0; depth < height; ++depth)
    for (int64_t t = 0; t < count; ++t)
      leaves[t] = stepFrom(op->nodes, keys, leaves[t]);
}

#define COMBINE(NAME, TYPE)                                                                        \
  static void NAME(const forest_t *op, const int64_t *leaves, int64_t count, void *sums) {         \
    TYPE *to = sums;                                                                               \
    for (int64_t t = 0; t < count; ++t) {                                                          \
      const TYPE *weights = (const TYPE *)op->weights + leaves[t] * op->targets;                   \
      for (int64_t k = 0; k < op->targets; ++k)                                                    \
        to[k] = op->combine == 0   ? to[k] + weights[k]                                            \
                : op->combine == 1 ? (weights[k] < to[k] ? weights[k] : to[k])                     \
                                   : (weights[k] > to[k] ? weights[k] : to[k]);                    \
    }                                                                                              \
  }                                                                                                \
  static void NAME##Start(const forest_t *op, int64_t row) {                                       \
    TYPE *to = (TYPE *)op->result.data + row * op->targets;                                        \
    for (int64_t k = 0; k < op->targets; ++k)                                                      \
      to[k] = op->combine == 0 ? 0 : op->combine == 1 ? HIGHEST : -HIGHEST;                        \
  }
COMBINE(combineF32, float)
COMBINE(combineF64, double)

/* The roots of trees, and the height of the highest. */
static int64_t rootsOf(const forest_t *op, const int64_t *trees, int64_t count, int64_t *roots) {
  int64_t height = 0;
  for (int64_t t = 0; t < count; ++t) {
    const int64_t *root = op->roots + 2 * trees[t];
    roots[t] = root[0];
    height = root[1] > height ? root[1] : height;
  }
  return height;
}

/* Trees [tree, until) of rows [begin, end), whose keys lie at `keys`. */
static void walkRows(const forest_t *op, const int64_t *keys, int64_t begin, int64_t end,
                     int64_t tree, int64_t until) {
  bool isDouble = op->x.dtype == HEDDLE_FLOAT64;
  int64_t width = op->features * (op->wantsSmallest ? 2 : 1), numbers[TOGETHER], roots[TOGETHER];
  int64_t bytes = op->targets * (isDouble ? sizeof(double) : sizeof(float));
  for (int64_t row = begin; row < end; ++row)
    for (int64_t t = tree; t < until; t += TOGETHER) {
      int64_t count = until - t < TOGETHER ? until - t : TOGETHER;
      for (int64_t i = 0; i < count; ++i)
        numbers[i] = t + i;
      int64_t height = rootsOf(op, numbers, count, roots);
      walk(op, keys + (row - begin) * width, height, count, roots);
      (isDouble ? combineF64 : combineF32)(op, roots, count, (char *)op->result.data + row * bytes);
    }
}

/* As many trees as the cache holds meet all rows, then the next ones. */
static void walkAll(const forest_t *op, const int64_t *keys, int64_t begin, int64_t end) {
  for (int64_t tree = 0; tree < op->trees;) {
    int64_t until = tree;
    do
      until = until + TOGETHER < op->trees ? until + TOGETHER : op->trees;
    while (until < op->trees && op->roots[2 * until] - op->roots[2 * tree] < NODES_IN_CACHE);
    walkRows(op, keys, begin, end, tree, until);
    tree = until;
  }
}

/* Combines one target's weights of a tree's leaves, those that `leaves` says, with each row's
 * result. */
static void combineTarget(const forest_t *op, const heddle_scan_t *scan, const uint32_t *leaves,
                          int64_t target, int64_t begin, int64_t end) {
  float weights[HEDDLE_SCAN_LEAVES], none = op->combine == 0   ? 0
                                            : op->combine == 1 ? HIGHEST
                                                               : -HIGHEST;
  bool matters = false;
  for (int64_t leaf = 0; leaf <= scan->count; ++leaf) {
    weights[leaf] = ((const float *)op->weights)[scan->leaves[leaf] * op->targets + target];
    matters |= weights[leaf] != none;
  }
  if (!matters) /* of several classes a tree often says something of one */
    return;
  float *to = (float *)op->result.data + begin * op->targets + target;
  int64_t rows = end - begin, step = op->targets;
  if (op->combine == 0 && step == 1)
    for (int64_t row = 0; row < rows; ++row)
      to[row] += weights[leaves[row]];
  else if (op->combine == 0)
    for (int64_t row = 0; row < rows; ++row)
      to[row * step] += weights[leaves[row]];
  else if (op->combine == 1)
    for (int64_t row = 0; row < rows; ++row)
      to[row * step] =
          weights[leaves[row]] < to[row * step] ? weights[leaves[row]] : to[row * step];
  else
    for (int64_t row = 0; row < rows; ++row)
      to[row * step] =
          weights[leaves[row]] > to[row * step] ? weights[leaves[row]] : to[row * step];
}

/* Combines the weights of a walked tree's leaves with each row's result. */
static void combineWalked(const forest_t *op, const uint32_t *leaves, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    int64_t leaf = leaves[row - begin];
    combineF32(op, &leaf, 1, (float *)op->result.data + row * op->targets);
  }
}

/* The leaves that rows reach in trees that have no scan, several trees at once. */
static void walkTrees(const forest_t *op, const int64_t *keys, int64_t rows, const int64_t *trees,
                      int64_t count, uint32_t (*leaves)[BLOCK_ROWS]) {
  int64_t width = op->features * (op->wantsSmallest ? 2 : 1), roots[TOGETHER] = {0},
          found[TOGETHER];
  for (int64_t first = 0; first < count; first += TOGETHER) {
    int64_t some = count - first < TOGETHER ? count - first : TOGETHER;
    int64_t height = rootsOf(op, trees + first, some, roots);
    for (int64_t row = 0; row < rows; ++row) {
      memcpy(found, roots, sizeof found);
      walk(op, keys + row * width, height, some, found);
      for (int64_t t = 0; t < some; ++t)
        leaves[first + t][row] = (uint32_t)found[t];
    }
  }
}

/* Trees in turn, each for all rows, so that sums are those of rows that walk. Of some trees at a
 * time those that have no scan are walked first, side by side. */
static void scanAll(const forest_t *op, const int64_t *keys, const int32_t *lanes, int64_t begin,
                    int64_t end) {
  uint32_t leaves[BLOCK_ROWS], walked[BATCH_TREES][BLOCK_ROWS];
  int64_t width = op->features * (op->wantsSmallest ? 2 : 1), trees[BATCH_TREES];
  const int32_t *next = op->scans;
  const heddle_scan_form_t *form = heddle_scan_form();
  for (int64_t first = 0; first < op->trees; first += BATCH_TREES) {
    heddle_scan_t scans[BATCH_TREES];
    int64_t some = op->trees - first < BATCH_TREES ? op->trees - first : BATCH_TREES, count = 0;
    for (int64_t t = 0; t < some; ++t) {
      scans[t] = heddle_scan_next(&next);
      if (scans[t].count == 0)
        trees[count++] = first + t;
    }
    walkTrees(op, keys, end - begin, trees, count, walked);
    count = 0;
    for (int64_t t = 0; t < some; ++t) {
      if (scans[t].count == 0) {
        combineWalked(op, walked[count++], begin, end);
        continue;
      }
      form->scan(&scans[t], lanes, width, end - begin, leaves);
      for (int64_t target = 0; target < op->targets; ++target)
        combineTarget(op, &scans[t], leaves, target, begin, end);
    }
  }
}

static void forestRows(const int64_t *args, int64_t begin, int64_t end, uint8_t *scratch) {
  const forest_t *op = (const forest_t *)(intptr_t)args[0];
  int64_t width = op->features * (op->wantsSmallest ? 2 : 1);
  int32_t *lanes = (int32_t *)scratch;
  int64_t *keys = (int64_t *)(lanes + BLOCK_ROWS * width);
  bool isDouble = op->x.dtype == HEDDLE_FLOAT64;
  for (int64_t block = begin; block < end; block += BLOCK_ROWS) {
    int64_t last = block + BLOCK_ROWS < end ? block + BLOCK_ROWS : end;
    bool isScanned = op->scans && last - block >= LEAST_ROWS;
    for (int64_t row = block; row < last; ++row) {
      if (!isScanned || !op->allScanned)
        keysOf(op, row, keys + (row - block) * width);
      (isDouble ? combineF64Start : combineF32Start)(op, row);
    }
    if (!isScanned) {
      walkAll(op, keys, block, last);
      continue;
    }
    heddle_scan_form()->keys((const uint32_t *)op->x.data + block * op->features, last - block,
                             op->features, op->wantsSmallest, lanes);
    scanAll(op, keys, lanes, block, last);
  }
}

void heddle_routine_forest(heddle_call_t *call, int64_t *frame) {
  forest_t op;
  ++frame;
  op.result = heddle_view_next(&frame);
  op.combine = *frame++;
  op.wantsSmallest = *frame++;
  op.x = heddle_view_next(&frame);
  heddle_view_t nodes = heddle_view_next(&frame), roots = heddle_view_next(&frame);
  op.nodes = nodes.data;
  op.roots = roots.data;
  op.weights = heddle_view_next(&frame).data;
  op.trees = roots.dims[0];
  op.targets = op.result.dims[1];
  op.features = op.x.dims[1];
  op.scans = (const int32_t *)(intptr_t)*frame;
  op.allScanned = op.scans != NULL && op.x.dims[0] >= LEAST_ROWS;
  const int32_t *next = op.scans;
  for (int64_t tree = 0; op.allScanned && tree < op.trees; ++tree)
    op.allScanned = heddle_scan_next(&next).count > 0;
  int64_t scratch, args[1] = {(int64_t)(intptr_t)&op};
  int64_t bytes = sizeof(int64_t) + sizeof(int32_t); /* of a feature's two forms */
  if (__builtin_mul_overflow(op.features, 2 * BLOCK_ROWS * bytes, &scratch))
    scratch = INT64_MAX;
  call->launch(call, forestRows, args, op.x.dims[0], scratch);
}
