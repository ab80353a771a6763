"""simulator: what a plan of a graph takes on several devices: a roofline per kernel, ready queues
per device, transfers per link, and the memory of each device.

The work is done by python/simulator, which is linked with nothing and evaluates thousands of plans
per second. SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import functools
from ctypes import POINTER, c_double, c_int32, c_int64, c_uint8, c_void_p
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heddle import Error, UsageError

from .graph import RESIDENT

DOUBLES, INTS, LONGS, BYTES = (POINTER(kind) for kind in (c_double, c_int32, c_int64, c_uint8))
HERE = Path(__file__).resolve().parents[1]
FOLDERS = (HERE / "lib", HERE.parents[1] / "build" / "release" / "lib")  # of the wheel, a checkout
INVALID_REWARD = -10.0  # of a plan that needs more memory than a device has (GO, section 3)


class _Graph(ctypes.Structure):
    _fields_ = [("nodes", c_int64), ("flops", DOUBLES), ("bytes", DOUBLES),
                ("held_bytes", DOUBLES), ("traits", BYTES), ("colocate", INTS),
                ("first_input", LONGS), ("inputs", INTS)]


class _Machine(ctypes.Structure):
    _fields_ = [("devices", c_int32), ("flops", DOUBLES), ("bytes", DOUBLES), ("launch", DOUBLES),
                ("memory", DOUBLES), ("link_bytes", DOUBLES), ("link_seconds", DOUBLES)]


@functools.lru_cache(maxsize=None)
def _library():
    folder = next((each for each in FOLDERS if (each / "simulator.so").exists()), None)
    if folder is None:
        raise Error(f"there is no simulator.so in '{FOLDERS[0]}' or '{FOLDERS[1]}'; './dev build' "
                    "makes it")
    found = ctypes.CDLL(str(folder / "simulator.so"))
    found.heddle_simulator_create.restype = c_void_p
    found.heddle_simulator_create.argtypes = [POINTER(_Graph), POINTER(_Machine)]
    found.heddle_simulator_destroy.argtypes = [c_void_p]
    found.heddle_simulator_run.argtypes = [c_void_p, c_int64, INTS, DOUBLES, BYTES, DOUBLES,
                                           DOUBLES]
    found.heddle_simulator_trace.argtypes = [c_void_p, INTS, DOUBLES, DOUBLES, DOUBLES, BYTES]
    found.heddle_simulator_kernels.restype = c_int64
    found.heddle_simulator_kernels.argtypes = [c_void_p, BYTES, DOUBLES, DOUBLES, INTS, LONGS,
                                               INTS, c_int64]
    return found


def _pointer(array, kind):
    return array.ctypes.data_as(kind)


@dataclass
class Machine:
    """Devices and the links between them. One number stands for all devices, or for all links."""

    devices: int
    flops_per_second: object = 9.3e12  # those of an NVIDIA P100, as in the paper
    bytes_per_second: object = 732e9
    launch_seconds: object = 5e-6
    memory_bytes: object = 16 * 2**30
    link_bytes_per_second: object = 12e9  # PCIe 3.0 x16
    link_seconds: object = 10e-6

    def __post_init__(self):
        if self.devices < 1:
            raise UsageError(f"a machine has {self.devices} devices, but needs at least one")
        for name in ("flops_per_second", "bytes_per_second", "memory_bytes", "launch_seconds"):
            self._spread(name, (self.devices,), name != "launch_seconds")
        for name in ("link_bytes_per_second", "link_seconds"):
            self._spread(name, (self.devices, self.devices), name != "link_seconds")

    def _spread(self, name, shape, is_positive):
        try:
            values = np.broadcast_to(np.asarray(getattr(self, name), np.float64), shape)
        except ValueError:
            raise UsageError(f"'{name}' has shape {list(np.shape(getattr(self, name)))}, but must "
                             f"be a number or have shape {list(shape)}") from None
        if not (np.isfinite(values).all() and (values > 0 if is_positive else values >= 0).all()):
            raise UsageError(f"'{name}' has {values.min():g}, but must be finite and "
                             f"{'greater than 0' if is_positive else 'not negative'}")
        setattr(self, name, np.ascontiguousarray(values))


@dataclass
class Plan:
    """Per node: its device, its priority (greater runs first) and whether its readers' kernels
    compute it."""

    device: np.ndarray
    priority: np.ndarray
    fuse: np.ndarray

    def copy(self):
        return Plan(self.device.copy(), self.priority.copy(), self.fuse.copy())


@dataclass
class Result:
    seconds: np.ndarray  # per plan
    peak_bytes: np.ndarray  # [plan, device]
    is_valid: np.ndarray  # whether all devices have the memory


@dataclass
class Trace:
    """Trace of one plan, per node; times are those of the kernel that contains the node."""

    device: np.ndarray
    ready: np.ndarray
    start: np.ndarray
    finish: np.ndarray
    fused: np.ndarray
    result: Result = None


@dataclass
class Kernels:
    """Those of a choice of fusion, by the node whose result each stores; empty for fused nodes."""

    flops: np.ndarray
    traffic_bytes: np.ndarray
    owner: np.ndarray
    first_read: np.ndarray
    reads: np.ndarray
    is_root: np.ndarray = None

    def reads_of(self, root):
        return self.reads[self.first_read[root]:self.first_read[root + 1]]


class Simulator:
    """Simulates plans of `graph` on `machine`. `evaluations` counts those that were simulated."""

    def __init__(self, graph, machine):
        self.graph, self.machine = graph, machine
        self._check_memory()
        traits = np.ascontiguousarray(graph.traits)
        of_graph = _Graph(
            len(graph), _pointer(graph.flops, DOUBLES), _pointer(graph.bytes, DOUBLES),
            _pointer(graph.held_bytes, DOUBLES), _pointer(traits, BYTES),
            _pointer(graph.colocate, INTS), _pointer(graph.first_input, LONGS),
            _pointer(graph.inputs, INTS))
        of_machine = _Machine(machine.devices, *(
            _pointer(array, DOUBLES) for array in (
                machine.flops_per_second, machine.bytes_per_second, machine.launch_seconds,
                machine.memory_bytes, machine.link_bytes_per_second, machine.link_seconds)))
        self._library = _library()
        self._handle = self._library.heddle_simulator_create(ctypes.byref(of_graph),
                                                             ctypes.byref(of_machine))
        self.evaluations = 0

    def __del__(self):
        if getattr(self, "_handle", None):
            self._library.heddle_simulator_destroy(self._handle)

    def _check_memory(self):
        """The result of a node, and what it holds, have to be on one device."""
        graph, most = self.graph, self.machine.memory_bytes.max()
        need = graph.held_bytes + np.where((graph.traits & RESIDENT) != 0, 0, graph.bytes)
        worst = int(np.argmax(need))
        if need[worst] > most:
            raise UsageError(
                f"node '{graph.name_of(worst)}' of graph '{graph.name}' needs "
                f"{need[worst] / 2**30:.3g} GiB, but the largest device has "
                f"{most / 2**30:.3g} GiB")

    def _rows(self, value, dtype, name):
        array = np.ascontiguousarray(value, dtype)
        if array.ndim == 1:
            array = array[None]
        if array.ndim != 2 or array.shape[1] != len(self.graph):
            raise UsageError(f"'{name}' of a plan has shape {list(np.shape(value))}, but the graph "
                             f"has {len(self.graph)} nodes")
        return array

    def run(self, device, priority, fuse):
        """Simulates plans: arrays [plan, node], or [node] for one. A row of `priority` or `fuse`
        may stand for all plans."""
        device = self._rows(device, np.int32, "device")
        count = len(device)
        if device.min() < 0 or device.max() >= self.machine.devices:
            raise UsageError(f"a plan names devices from {device.min()} to {device.max()}, but "
                             f"there are {self.machine.devices}, numbered from 0")
        priority, fuse = (
            array if len(array) == count else np.ascontiguousarray(
                np.broadcast_to(array, device.shape))
            for array in (self._rows(priority, np.float64, "priority"),
                          self._rows(fuse, np.uint8, "fuse")))
        seconds = np.empty(count)
        peak = np.empty((count, self.machine.devices))
        self._library.heddle_simulator_run(
            self._handle, count, _pointer(device, INTS), _pointer(priority, DOUBLES),
            _pointer(fuse, BYTES), _pointer(seconds, DOUBLES), _pointer(peak, DOUBLES))
        self.evaluations += count
        return Result(seconds, peak, (peak <= self.machine.memory_bytes).all(1))

    def seconds(self, plan):
        """The makespan of a plan; infinite if it needs more memory than a device has."""
        result = self.run(plan.device, plan.priority, plan.fuse)
        return float(result.seconds[0]) if result.is_valid[0] else float("inf")

    def trace(self, plan):
        """Simulates one plan and tells when each kernel ran where."""
        return self.last_trace(self.run(plan.device, plan.priority, plan.fuse))

    def last_trace(self, result):
        """When each kernel ran where in the plan that was simulated last, with this result."""
        count = len(self.graph)
        found = Trace(np.empty(count, np.int32), np.empty(count), np.empty(count),
                      np.empty(count), np.empty(count, np.uint8), result)
        self._library.heddle_simulator_trace(
            self._handle, _pointer(found.device, INTS), _pointer(found.ready, DOUBLES),
            _pointer(found.start, DOUBLES), _pointer(found.finish, DOUBLES),
            _pointer(found.fused, BYTES))
        return found

    def kernels(self, fuse):
        """The kernels that these fusion bits make."""
        fuse = self._rows(fuse, np.uint8, "fuse")[0]
        count, capacity = len(self.graph), 4 * len(self.graph.inputs) + 1
        found = Kernels(np.empty(count), np.empty(count), np.empty(count, np.int32),
                        np.empty(count + 1, np.int64), np.empty(capacity, np.int32))
        size = self._library.heddle_simulator_kernels(
            self._handle, _pointer(fuse, BYTES), _pointer(found.flops, DOUBLES),
            _pointer(found.traffic_bytes, DOUBLES), _pointer(found.owner, INTS),
            _pointer(found.first_read, LONGS), _pointer(found.reads, INTS), capacity)
        found.reads = found.reads[:size]
        found.is_root = found.owner == np.arange(count)
        return found

    def kernel_seconds(self, kernels):
        """[device, node]: how long each kernel takes on each device; 0 for resident nodes."""
        machine = self.machine
        seconds = machine.launch_seconds[:, None] + np.maximum(
            kernels.flops / machine.flops_per_second[:, None],
            kernels.traffic_bytes / machine.bytes_per_second[:, None])
        idle = ((self.graph.traits & RESIDENT) != 0) | ~kernels.is_root
        return np.where(idle, 0.0, seconds)

    def lower_bound(self, fuse):
        """Seconds that no placement or order of these kernels can beat: the longest path, and the
        work over all devices."""
        kernels = self.kernels(fuse)
        fastest = self.kernel_seconds(kernels).min(0)
        finish = np.zeros(len(self.graph))
        for root in np.flatnonzero(kernels.is_root):
            reads = kernels.reads_of(root)
            finish[root] = fastest[root] + (finish[reads].max() if len(reads) else 0.0)
        return max(float(finish.max()), float(fastest.sum() / self.machine.devices))


def reward(result, baseline_seconds):
    """GO's: minus the root of the time relative to a baseline; a fixed penalty if invalid."""
    return np.where(result.is_valid, -np.sqrt(result.seconds / baseline_seconds), INVALID_REWARD)
