"""packages: Python packages that only a part of Heddle needs, imported when that part is used.

SPDX-License-Identifier: Apache-2.0
"""

import importlib

from .library import UsageError


def need(module, what, extra):
    """The module; without its package an error that says what needs it, and the extra of the
    wheel's metadata that lists it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".", 1)[0]
        raise UsageError(f"{what} needs the Python package '{package}', of the extra '{extra}': "
                         f"{error}; 'pip install {package}' installs it") from error
