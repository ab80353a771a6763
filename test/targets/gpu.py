"""gpu: models in a process of their own, whose CUDA driver is the emulated one, or none: a process
opens one driver, and reads its settings once."""

import concurrent.futures
import ctypes
import gc
import json
import multiprocessing
import os
import re
import shutil
import site
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

import heddle

DRIVER = Path(__file__).parents[2] / "build" / "release" / "lib" / "libheddle-emulated-cuda.so"
ALL_GROUPS = {"plan": 1, "thresholds": {"device_elements": 0}, "groups": []}  # however small
NO_DRIVER = "/nowhere/libcuda.so.1"


def _set(variables):
    os.environ.update(variables)


def in_process(function, *arguments, driver=DRIVER, settings=""):
    """Returns what the function does in a process with this driver; `settings` are of the emulated
    one, all of whose checks are on."""
    changed = {"HEDDLE_CUDA_DRIVER": str(driver), "HEDDLE_EMULATED_CUDA": settings}
    with concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), _set, (changed,)) as pool:
        return pool.submit(function, *arguments).result()


def report():
    """Counters of the emulated driver in this process."""
    text = ctypes.create_string_buffer(1 << 16)
    ctypes.CDLL(os.environ["HEDDLE_CUDA_DRIVER"]).heddleEmulatedCudaReport(text, 1 << 16)
    return json.loads(text.value)


def _run(source, runs, target, options):
    module = heddle.load(source) if target is None else heddle.compile(
        source, target=target, **options)
    session = heddle.Session(module)
    found = SimpleNamespace(target=module.info["target"], results=[], memory=[], report={})
    for feeds in runs:
        try:
            found.results.append(session.run(None, feeds))
        except heddle.Error as error:
            found.results.append(str(error))
        found.memory.append(session.memory)
    if os.environ["HEDDLE_CUDA_DRIVER"] != NO_DRIVER:
        found.report = report()
    return found


def run(source, runs, target="cuda", driver=DRIVER, settings="", **options):
    """Results of a session, or for a run that failed its error; the memory after each; the target
    of the form that ran; and counters of the driver. Without a target `source` is an artefact."""
    if level := os.environ.get("HEDDLE_TEST_OPT"):
        options.setdefault("opt_level", int(level))
    options.setdefault("verify_stages", True)
    return in_process(_run, source, runs, target, options, driver=driver, settings=settings)


def errors(folder, artefacts, feeds):
    """Errors of a run of each, "" where nothing is wrong."""
    said = []
    for content in artefacts:
        path = folder / f"{len(said)}.so"  # of its own: what is mapped must not change
        path.write_bytes(content)
        try:
            heddle.load(path).run(None, feeds)
            said.append("")
        except heddle.Error as error:
            said.append(str(error))
        gc.collect()  # the context, which is lost, ends with the artefact
    return said


def loaded(texts):
    """Answers of the driver to each text as a module."""
    driver, context, module = ctypes.CDLL(str(DRIVER)), ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuInit(0) == driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxPushCurrent_v2(context) == 0
    return [driver.cuModuleLoadDataEx(ctypes.byref(module), text + b"\0", 0, None, None)
            for text in texts]


def assembler():
    """The path of ptxas, on PATH or of PyPI's nvidia-cuda-nvcc, or None."""
    wheels = (path for folder in site.getsitepackages()
              for path in Path(folder).glob("nvidia/*/bin/ptxas"))
    return shutil.which("ptxas") or next(wheels, None)


def assembled(path, chip):
    """{kernel: (registers, bytes that it spills)} of a text; skips the test without ptxas."""
    program = assembler()
    if not program:
        pytest.skip("there is no ptxas (PyPI's nvidia-cuda-nvcc has one)")
    done = subprocess.run([program, f"-arch={chip}", "-v", path, "-o", path.with_suffix(".cubin")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes "
                       r"spill loads.*?Used (\d+) registers", done.stderr, re.S)
    return {name: (int(used), int(stored) + int(read)) for name, stored, read, used in found}
