"""heddle.torch: torch.compile(model, backend="heddle").

    import torch

    compiled = torch.compile(model, backend="heddle", options={"freeze": True})

An installed package says by its entry point that torch has this backend; where Heddle is not
installed, `import heddle.torch` tells torch. SPDX-License-Identifier: Apache-2.0
"""

from ..library import UsageError
from ..packages import need

LEAST = (2, 13)  # of torch: what the tests run with


def _check(torch):
    found = str(torch.__version__)
    if tuple(int(part) for part in found.split(".")[:2]) < LEAST:
        raise UsageError(f"heddle.torch needs torch {LEAST[0]}.{LEAST[1]} or later, but torch "
                         f"{found} is installed")


_check(need("torch", "heddle.torch", "torch"))

from .dynamo import backend  # noqa: E402
from .export import Trainer, export, to_onnx  # noqa: E402

__all__ = ["Trainer", "backend", "export", "to_onnx"]


def _register():
    from torch._dynamo.backends import registry

    registry._lazy_import()  # so that the entry point, where there is one, is known
    if "heddle" not in registry._BACKENDS:
        registry.register_backend(compiler_fn=backend, name="heddle")


_register()
