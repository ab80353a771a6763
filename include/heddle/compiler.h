/* compiler.h: compile an ONNX model to an artefact, or into this process.
 *
 * The other half of the API, in libheddle.so only; that library exports runtime.h too. The same
 * rules hold: NULL status is success, strings belong to the handle that they were asked of.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HEDDLE_COMPILER_H
#define HEDDLE_COMPILER_H

#include "heddle/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_compiled heddle_compiled_t;

#define HEDDLE_OPT_NONE (-1) /* what a compiler calls -O0 */

/* Zero all, set size, then what is wanted: zero and NULL are the defaults. Written by
 * tools/check/options.py from compile_options.def, which has the same as flags and for Python. */
typedef struct heddle_compile_options {
  size_t size; /* sizeof(heddle_compile_options_t) */
  /* 'host' (default), 'c' (a C99 file), x86-64-v2, x86-64-v3, x86-64-v4, x86-64-vnni, x86-64-bf16,
     aarch64, aarch64-dotprod, aarch64-i8mm, aarch64-bf16, or a CPU name of LLVM; several in one
     artefact: x86-64-v2+v3+v4+vnni; 'help' lists all. */
  const char *target;
  /* Optimisation level of LLVM, 0 to 3 (default 3). 0 is the default, HEDDLE_OPT_NONE what a
     compiler calls -O0. */
  int opt_level;
  /* Fix the sizes of an input, x=1x3x?x?, or a size by its name, batch=4. */
  const char *const *shapes;
  size_t shape_count;
  /* Carry out this plan. */
  const char *plan;
  /* A folder of cards beside the built-in ones. HEDDLE_SCHEDULES names more of them, by colons. */
  const char *schedules;
  /* Threads of a run; 0 (default): as many as the machine has. */
  int threads;
  /* Do not compute larger constants at compile time (default 64 MiB). */
  int64_t fold_limit_bytes;
  /* Called with a stage and 0..1 of the whole. */
  void (*progress)(void *data, const char *stage, double fraction);
  void *progress_data;
  /* Leave out layers of the partitioner, to compare: cards (what cards claim as a whole), fusion
     (of the rest), stitch (products and the reductions over their rows), siblings (groups that walk
     the same elements become one), regions (groups that are launched at once), feedback (groups
     that are split again since their kernel does not pay), recomputation (of what steps of training
     need not keep), short-results (results that only products of bf16 read, as bf16). */
  const char *without;
  /* Make code that can tell how long each group of ops took. heddle_session_options_t.profile is
     told. */
  int profiles;
  /* Use what 'heddle tune' has found where the plan says nothing (default: HEDDLE_RECORDS, or
     none). */
  const char *records;
  /* 'fast' (default), or 'strict': no algorithms that round sums otherwise than by their order
     (Winograd's convolutions), and floats of 16 bits are rounded after each op, not only where they
     leave the model; or 'bf16': as fast, and factors of products are rounded to bf16 where that
     saves time, while their sums are float32 (targets without such products are refused); or
     'bf16-emulated': the same numbers on any target, in more time than 'fast' takes; or 'int8': as
     fast, and products with constant weights are those of 8-bit integers, weights scaled by columns
     and activations by rows, in each run. */
  const char *math;
  /* Threads that compile; 0 (default): as many as the cores that the process may use. */
  int jobs;
  /* Folder of what was compiled before (default: HEDDLE_CACHE, or heddle/compiled in the user's
     folder for caches). docs/guide/cache.md says more. "" is none. */
  const char *cache;
  /* Of the cache's folder; above it goes what was not used (default 10 GiB). */
  int64_t cache_limit_bytes;
  /* End after the plan: there are heddle_compiled_plan and the kinds "plan", "graph" and "loops"
     alone. */
  int plan_only;
  /* An ONNX file, a model or a FunctionProto, with functions that the model's nodes may call by
     domain and name (docs/guide/custom-ops.md). */
  const char *const *functions;
  size_t function_count;
  /* Print what these stages have made: import, simplify, partition, plan, lower, emit. `print` is
     called with it: the graph, the kernels and the program around them, assembly. */
  const char *print_after;
  /* Called with the text of a stage of `print_after`. */
  void (*print)(void *data, const char *stage, const char *text);
  void *print_data;
  /* What a size usually is, which decides how work and memory are laid out; it stays open:
     seq=128. */
  const char *const *typical;
  size_t typical_count;
  /* An output that a run may write where an input lies: new_state=state. */
  const char *const *in_place;
  size_t in_place_count;
  /* Rows of a batch have lengths of their own, which an input says, and only they are computed:
     batch:seq=lengths (integers [batch], a new input) or batch:seq=attention_mask (a mask [batch,
     seq] of the model). Outputs are 0 beyond (docs/guide/ragged.md). */
  const char *const *ragged;
  size_t ragged_count;
  /* Outputs with rows: 'padded' with zeros (default), or 'packed': [batch, seq, ...] becomes [sum
     of the lengths, ...], row after row, and a last output `row_offsets`, i64 [batch + 1], says
     where each begins. */
  const char *ragged_outputs;
  /* A recipe: compile a step of the model's training, its evaluation or a derivative
     (docs/spec/training.md). The recipe is JSON. */
  const char *training;
  /* What a run may take (docs/guide/memory.md): where it is too little, results are computed twice.
     It counts inputs, outputs that have no input's buffer, weights and what lies between kernels,
     for typical sizes; 0: no limit. */
  int64_t memory_limit_bytes;
  /* Let a cost model, an artefact of what 'heddle cost train' wrote, choose where plan and records
     do not (docs/guide/cost.md; default: HEDDLE_COST_MODEL, or none). A file of another version is
     not used, which the report tells. */
  const char *cost_model;
  /* Who chooses where the plan does not: 'learned', the cost model without any records, or 'rules',
     which ask neither (default: records, cost model, rules). */
  const char *chooser;
  /* Results below the normal numbers (1.2e-38 in float32): 'keep' (default where math is strict),
     or 'flush' them to 0, since arithmetic on such numbers is up to 100 times slower. */
  const char *subnormals;
  /* Verify what each stage has made, not only the stage lower: for who changes the compiler. */
  int verify_stages;
  /* The plan says which ops of the model's nodes are in each group, and for which mechanism, so
     that it gives the same groups to a compiler that would fuse otherwise (docs/spec/plan.md). */
  int exact_plan;
  /* Keep the keys and values of past tokens where they lie, in buffers for N tokens: past inputs
     are such buffers, which a run extends, and present outputs are none
     (docs/guide/kv-cache.md). */
  int kv_cache;
  /* Numbers of these buffers: f32, bf16, f16, or int8 with a scale for each head and token
     (default: those of the model). */
  const char *kv_cache_type;
} heddle_compile_options_t;

/* Refuses options, their recipe of a training among them, that no model can be compiled with. */
HEDDLE_API heddle_status_t *heddle_compile_options_check(const heddle_compile_options_t *options);

/* `options` may be NULL. */
HEDDLE_API heddle_status_t *heddle_compile(const char *model_path,
                                           const heddle_compile_options_t *options,
                                           heddle_compiled_t **compiled);
HEDDLE_API heddle_status_t *heddle_compile_bytes(const void *model, size_t bytes,
                                                 const char *name_for_messages,
                                                 const heddle_compile_options_t *options,
                                                 heddle_compiled_t **compiled);
HEDDLE_API void heddle_compiled_destroy(heddle_compiled_t *compiled);

/* Writes "so", "o", "h", "ll", "asm", "c", "plan", "graph" or "loops". The file appears whole or
 * not at all: a failure leaves nothing, and what was there before stays. */
HEDDLE_API heddle_status_t *heddle_compiled_write(const heddle_compiled_t *compiled,
                                                  const char *kind, const char *path);

/* The model in this process, without a file. The module keeps what it needs of `compiled`. */
HEDDLE_API heddle_status_t *heddle_compiled_module(const heddle_compiled_t *compiled,
                                                   heddle_module_t **module);

HEDDLE_API const char *heddle_compiled_plan(const heddle_compiled_t *compiled);   /* JSON */
HEDDLE_API const char *heddle_compiled_report(const heddle_compiled_t *compiled); /* JSON: seconds
                                                                    a stage, groups, arena */

/* All that was decided and why, as JSON: of each group its ops, key, offers with the reasons of
 * refusals, choice, traffic and work; the memory plan; the texts of the cards that were chosen
 * (docs/guide/explain.md). */
HEDDLE_API heddle_status_t *heddle_compiled_explain(const heddle_compiled_t *compiled,
                                                    const char **json);
/* The same, with work and traffic as numbers for a run of these sizes, "batch=4"; `lengths` are
 * those of the rows of a ragged model. */
HEDDLE_API heddle_status_t *heddle_compiled_explain_run(const heddle_compiled_t *compiled,
                                                        const char *const *sizes, size_t size_count,
                                                        const int64_t *lengths, size_t length_count,
                                                        const char **json);

/* Runs the model in the reference interpreter, slow and obvious, and calls `each` with every
 * node's results in the order of computation; `result` lives until `each` returns. */
HEDDLE_API heddle_status_t *
heddle_reference_run(const char *model_path, const heddle_tensor_t *inputs, size_t input_count,
                     void (*each)(void *data, const char *node, const char *op, const char *value,
                                  const heddle_tensor_t *result),
                     void *data);

/* As above, for the graph that these options make of the model: with sizes that are fixed,
 * functions of the user, or a recipe of its training. `options` may be NULL. */
HEDDLE_API heddle_status_t *
heddle_reference_run_with(const char *model_path, const heddle_compile_options_t *options,
                          const heddle_tensor_t *inputs, size_t input_count,
                          void (*each)(void *data, const char *node, const char *op,
                                       const char *value, const heddle_tensor_t *result),
                          void *data);

/* A text that a function made; it lives until its handle is destroyed. */
typedef struct heddle_text heddle_text_t;
HEDDLE_API const char *heddle_text_str(const heddle_text_t *text);
HEDDLE_API void heddle_text_destroy(heddle_text_t *text);

/* All cards in the order in which a chooser sees them, as JSON. `schedules`: the path of a folder
 * of cards beside the built-in ones, or NULL. */
HEDDLE_API heddle_status_t *heddle_cards_list(const char *schedules, heddle_text_t **json);

/* The text of the card of this name. */
HEDDLE_API heddle_status_t *heddle_cards_show(const char *schedules, const char *name,
                                              heddle_text_t **card);

/* For each group of the model, or the one named `group` (NULL: all), which cards are offered, why
 * others are refused, and what is chosen, as JSON. `options` may be NULL. */
HEDDLE_API heddle_status_t *heddle_cards_explain(const char *model_path,
                                                 const heddle_compile_options_t *options,
                                                 const char *group, heddle_text_t **json);

/* Proves a card: compiles its example `count` times over (0: the default) for random sizes and
 * knobs, and holds it against the reference interpreter. Kernels run in a process of their own, for
 * at most `seconds` each (0: 30). An error when the card is refused or its example proves nothing;
 * numbers that differ are in the JSON, whose "passes" is then false, and so is a kernel that
 * crashed or did not end. */
HEDDLE_API heddle_status_t *heddle_cards_check(const char *card_path, int64_t count, uint32_t seed,
                                               int64_t seconds, heddle_text_t **json);

/* The text of a first card for one group of a model; NULL for the first that has a reduction. */
HEDDLE_API heddle_status_t *heddle_cards_draft(const char *name, const char *model_path,
                                               const heddle_compile_options_t *options,
                                               const char *group, heddle_text_t **card);

/* Zero all, set size, then what is wanted: zero and NULL are the defaults. */
typedef struct heddle_tune_options {
  size_t size;              /* sizeof(heddle_tune_options_t) */
  int64_t trials;           /* candidates and plans to try at most; 0: as many as the time allows */
  double seconds;           /* for all; 0: 300 */
  double trial_seconds;     /* after which a candidate has failed; 0: 20 */
  uint64_t seed;            /* of the candidates that are drawn */
  const char *const *sizes; /* "batch=4": at which a size known only at run time is measured; 32 */
  size_t size_count;
  /* Told what goes on, with 0..1 of the whole; not 0 ends the tuning, and what was found stays. */
  int (*progress)(void *data, const char *what, double fraction);
  void *progress_data;
  /* "seq=5,24:0.2,43", "seq=1..128" or "seq=@FILE": tune for all of these sizes at once, with
   * weights; knobs may then differ from size to size. A file holds observed sizes. */
  const char *const *over;
  size_t over_count;
  /* If not 0, nothing is searched for: so many candidates of each group are drawn from all that
   * there are and timed, what records have of it included. */
  int64_t collected;
  /* Not 0: searches over whole plans as well: what is fused, split and laid out how. */
  int plans;
  const char *strategy; /* of that: "annealing" (NULL: this one) or "evolution" */
  const char *schedule; /* "joint": plans and knobs by turns (NULL: this one), or "sequential" */
  const char *decide;   /* "layouts,fusion,split,knobs", or some of them; NULL: all */
  int64_t candidates;   /* with heddle_compile_options_t.cost_model: that are measured at most of
                           those of each group that the model judges; 0: 8 */
} heddle_tune_options_t;

/* Measures cards and knobs for each distinct group of the model on this machine, into
 * options->records, from where later compilations with the same target and number of threads take
 * them; what is there already is not measured again. A cost model of `options` says what is worth a
 * measurement. Gives what was found as JSON (docs/guide/tune.md). Candidates run in forked
 * processes, so this process may have no threads but the caller's. `tune` may be NULL. */
HEDDLE_API heddle_status_t *heddle_tune(const char *model_path,
                                        const heddle_compile_options_t *options,
                                        const heddle_tune_options_t *tune, heddle_text_t **json);

/* What a file of tuning records has measured, as numbers that a cost model is trained with: JSON
 * (docs/spec/features.md). `target` names whose measurements are meant, NULL or "host" this
 * machine's; `threads` those of how many threads, 0 all, which must be of one number. */
HEDDLE_API heddle_status_t *heddle_cost_features(const char *records, const char *target,
                                                 int threads, heddle_text_t **json);

/* Keeps the artefact in the cache, and says where, and of which files of external data it was made,
 * as JSON: {"path": "...", "files": ["..."]}; "null" where the cache cannot have it. */
HEDDLE_API heddle_status_t *heddle_compiled_kept(const heddle_compiled_t *compiled,
                                                 heddle_text_t **json);

/* What a cache's folder holds, as JSON: {"path", "entries", "bytes"}. `folder` as
 * heddle_compile_options_t.cache; the path is "" where there is none. "not_used" says why a folder
 * that is there is not used: others may write to it. */
HEDDLE_API heddle_status_t *heddle_cache_usage(const char *folder, heddle_text_t **json);

/* Removes what was used last the longest ago until at most `bytes` are left, all for 0. Gives what
 * there is then. */
HEDDLE_API heddle_status_t *heddle_cache_shrink(const char *folder, int64_t bytes,
                                                heddle_text_t **json);

/* The supported ONNX ops as a markdown table. */
HEDDLE_API const char *heddle_support_table(void);

#ifdef __cplusplus
}
#endif
#endif
