"""differences: what ONNX Runtime's package has and this one has not, and why. The tables of
docs/guide/onnxruntime.md are made of it: `python -m heddle.onnxruntime.differences` prints them.

SPDX-License-Identifier: Apache-2.0
"""

_DEVICE = "there is one device, the CPU"
_COMPILED = "a model is compiled ahead by `heddle compile`, and the artefact is loaded by its path"
_PACKAGE = "packages of models for several engines"
_SPARSE = "tensors are dense"
_ADAPTER = "adapters are merged before a model is exported"
_MEMORY = "memory is the session's own; `heddle_pool_t` and `out` are what a caller can give"

# {class, or "module": {reason: names}}
ABSENT = {
    "module": {
        _ADAPTER: ("AdapterFormat", "LoraAdapter"),
        _COMPILED: ("ModelCompiler", "OrtCompileApiFlags"),
        _PACKAGE: ("ModelPackage", "ModelPackageComponentContext", "ModelPackageContext",
                   "ModelPackageOptions", "ModelPackageWriteMode"),
        _MEMORY: ("OrtAllocatorType", "OrtArenaCfg", "OrtMemType", "OrtMemoryInfo",
                  "OrtMemoryInfoDeviceType", "OrtExternalInitializerInfo",
                  "create_and_register_allocator", "create_and_register_allocator_v2"),
        _DEVICE: ("OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtEpAssignedNode",
                  "OrtEpAssignedSubgraph", "OrtEpContextData", "OrtEpContextDataBuffer",
                  "OrtEpDevice", "OrtExecutionProviderDevicePolicy", "OrtHardwareDevice",
                  "OrtHardwareDeviceType", "OrtSyncStream", "copy_tensors", "cuda_version",
                  "get_ep_devices", "register_execution_provider_library",
                  "unregister_execution_provider_library"),
        _SPARSE: ("OrtSparseFormat", "SparseTensor"),
        "nothing is logged; errors are exceptions": ("set_default_logger_callback",),
        "each session has its threads": ("set_global_thread_pool_sizes",),
        "random ops take their seed from the model": ("set_seed",),
        "internals of its package": ("import_capi_exception", "print_debug_info"),
    },
    "SessionOptions": {
        "weights are in the model or in its external data": (
            "add_external_initializers", "add_external_initializers_from_files_in_memory",
            "add_initializer"),
        "sizes are known by their names": ("add_free_dimension_override_by_denotation",),
        _DEVICE: ("add_provider", "add_provider_for_devices", "clear_ep_context_data_read_func",
                  "has_providers", "set_ep_context_data_read_func", "set_provider_selection_policy",
                  "set_provider_selection_policy_delegate"),
        "compiling ends by itself": ("set_load_cancellation_flag",),
    },
    "RunOptions": {_ADAPTER: ("add_active_adapter",)},
    "InferenceSession": {
        _DEVICE: ("create_ortvalue_from_shape_and_type", "get_input_epdevices",
                  "get_input_memory_infos", "get_output_memory_infos",
                  "get_provider_graph_assignment_info", "release_captured_graph",
                  "set_ep_dynamic_options"),
        "`heddle tune` keeps what it finds in a file of records": (
            "get_tuning_results", "set_tuning_results"),
        "lists of OrtValue are lists": ("run_with_ortvaluevector",),
    },
    "OrtValue": {_SPARSE: ("as_sparse_tensor", "ort_value_from_sparse_tensor")},
    "IOBinding": {"lists of OrtValue are lists": ("get_outputs_as_ortvaluevector",)},
    "OrtDevice": {_DEVICE: ("device_mem_type", "device_vendor_id")},
}


def names(of):
    """All that a class, or the module, has not."""
    return {name for group in ABSENT.get(of, {}).values() for name in group}


def tables():
    """The absent names as a table of markdown."""
    rows = ["| of | absent | why |", "| --- | --- | --- |"]
    for of, reasons in ABSENT.items():
        for reason, absent in reasons.items():
            rows.append(f"| {of} | {', '.join(f'`{name}`' for name in absent)} | {reason} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(tables())
