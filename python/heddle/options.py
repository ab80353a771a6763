"""options: those of `compile`, as include/heddle/compile_options.def has them.

Written by `tools/check/options.py --write`. SPDX-License-Identifier: Apache-2.0
"""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p

Progress = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_double)
Print = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


class CompileOptions(ctypes.Structure):
    """`heddle_compile_options_t`."""

    _fields_ = [
        ("size", c_size_t), ("target", c_char_p), ("opt_level", c_int),
        ("shapes", POINTER(c_char_p)), ("shape_count", c_size_t), ("plan", c_char_p),
        ("schedules", c_char_p), ("threads", c_int), ("fold_limit_bytes", c_int64),
        ("progress", Progress), ("progress_data", c_void_p), ("without", c_char_p),
        ("profiles", c_int), ("records", c_char_p), ("math", c_char_p), ("jobs", c_int),
        ("cache", c_char_p), ("cache_limit_bytes", c_int64), ("plan_only", c_int),
        ("functions", POINTER(c_char_p)), ("function_count", c_size_t), ("print_after", c_char_p),
        ("print", Print), ("print_data", c_void_p), ("typical", POINTER(c_char_p)),
        ("typical_count", c_size_t), ("in_place", POINTER(c_char_p)), ("in_place_count", c_size_t),
        ("ragged", POINTER(c_char_p)), ("ragged_count", c_size_t), ("ragged_outputs", c_char_p),
        ("training", c_char_p), ("memory_limit_bytes", c_int64), ("cost_model", c_char_p),
        ("chooser", c_char_p), ("subnormals", c_char_p), ("verify_stages", c_int),
        ("exact_plan", c_int), ("kv_cache", c_int), ("kv_cache_type", c_char_p),
    ]


# Keyword of `compile` -> field, kind, and the count of a list or the most that a number may be.
ROWS = {
    "target": ("target", "Text", None), "opt_level": ("opt_level", "Number", 3),
    "shapes": ("shapes", "List", "shape_count"), "plan": ("plan", "Path", None),
    "schedules": ("schedules", "Path", None), "threads": ("threads", "Number", 4096),
    "fold_limit_bytes": ("fold_limit_bytes", "Bytes", 9223372036854775807),
    "without": ("without", "Words", None), "profile": ("profiles", "Flag", None),
    "records": ("records", "Path", None), "math": ("math", "Choice", None),
    "jobs": ("jobs", "Number", 4096), "cache": ("cache", "Path", None),
    "functions": ("functions", "List", "function_count"),
    "typical": ("typical", "List", "typical_count"),
    "in_place": ("in_place", "List", "in_place_count"),
    "ragged": ("ragged", "List", "ragged_count"),
    "ragged_outputs": ("ragged_outputs", "Choice", None), "training": ("training", "Text", None),
    "memory": ("memory_limit_bytes", "Bytes", 9223372036854775807),
    "cost_model": ("cost_model", "Path", None), "chooser": ("chooser", "Choice", None),
    "subnormals": ("subnormals", "Choice", None), "verify_stages": ("verify_stages", "Flag", None),
    "exact_plan": ("exact_plan", "Flag", None), "kv_cache": ("kv_cache", "Number", 2147483647),
    "kv_cache_type": ("kv_cache_type", "Choice", None),
}
