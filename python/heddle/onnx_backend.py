"""onnx_backend: Heddle as a backend of onnx.backend.base, so that tests for those run unchanged.

    import onnx.backend.test
    import heddle.onnx_backend
    suite = onnx.backend.test.BackendTest(heddle.onnx_backend)

SPDX-License-Identifier: Apache-2.0
"""

from onnx.backend.base import Backend, BackendRep

from .compiler import compile as compile_model


class HeddleRep(BackendRep):
    """A compiled model."""

    def __init__(self, module):
        self.module = module

    def run(self, inputs, **kwargs):
        """The outputs, in the model's order, for inputs in the model's order or by name."""
        del kwargs
        if not isinstance(inputs, dict):
            names = [value.name for value in self.module.inputs]
            inputs = dict(zip(names, inputs))
        return tuple(self.module.run(None, inputs))


class HeddleBackend(Backend):
    """Compiles into this process. What is given beside model and device goes to heddle.compile."""

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        if not cls.supports_device(device):
            raise ValueError(f"device '{device}': Heddle's backend runs on 'CPU'")
        return HeddleRep(compile_model(model, **options))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **options):
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def supports_device(cls, device):
        return device.split(":")[0] == "CPU"


prepare = HeddleBackend.prepare
run_model = HeddleBackend.run_model
supports_device = HeddleBackend.supports_device
