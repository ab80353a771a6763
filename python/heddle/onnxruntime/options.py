"""options: SessionOptions and RunOptions, with the attributes and defaults of ONNX Runtime's. What
has no meaning here is accepted, and says so when it is set. SPDX-License-Identifier: Apache-2.0
"""

import enum
import warnings


class DifferenceWarning(UserWarning):
    """Something that ONNX Runtime does and Heddle does not; docs/guide/onnxruntime.md lists all."""


def differs(text):
    warnings.warn(f"heddle.onnxruntime: {text}", DifferenceWarning, stacklevel=4)


class ExecutionMode(enum.Enum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.Enum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class _Attributes:
    """Attributes of fixed names; another one is an AttributeError, as in ONNX Runtime."""

    DEFAULTS = {}

    def __init__(self):
        for name, value in self.DEFAULTS.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_entries", {})

    def __setattr__(self, name, value):
        if name not in self.DEFAULTS:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        known = self.DEFAULTS[name]
        if isinstance(known, (bool, int)) and not isinstance(known, enum.Enum) \
                and not isinstance(value, int):
            raise TypeError(f"'{name}' is a {type(value).__name__}, but {type(known).__name__} "
                            "is allowed")
        object.__setattr__(self, name, value)

    def _add_entry(self, key, value):
        self._entries[str(key)] = str(value)
        differs(f"the config entry '{key}' is kept, and has no effect")

    def _get_entry(self, key):
        if key not in self._entries:
            raise RuntimeError(f"there is no configuration with the key {key}")
        return self._entries[key]


class SessionOptions(_Attributes):
    """Options of a session. Heddle uses intra_op_num_threads, graph_optimization_level
    (ORT_DISABLE_ALL leaves out the partitioner's layers), enable_profiling, profile_file_prefix and
    the overrides of free dimensions."""

    DEFAULTS = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    def __init__(self):
        super().__init__()
        object.__setattr__(self, "_sizes", {})

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "optimized_model_filepath" and value:
            differs(f"'{value}' will not be written: what Heddle makes of a model is no ONNX; "
                    "heddle.compile(model, output='model.so') writes it")

    def add_free_dimension_override_by_name(self, dim_name, dim_value):
        """Fixes a named size of the inputs when the model is compiled."""
        self._sizes[str(dim_name)] = int(dim_value)

    add_session_config_entry, get_session_config_entry = (
        _Attributes._add_entry, _Attributes._get_entry)

    def register_custom_ops_library(self, path):
        raise NotImplementedError(
            f"'{path}': libraries of custom ops for ONNX Runtime cannot be loaded; "
            "docs/guide/custom-ops.md says how to give an op of your own")


class RunOptions(_Attributes):
    """`terminate` is looked at before a run, which then raises Fail; a run that has begun ends."""

    DEFAULTS = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
    }

    add_run_config_entry, get_run_config_entry = _Attributes._add_entry, _Attributes._get_entry
