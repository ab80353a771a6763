"""records: what tuning has measured, as numbers. SPDX-License-Identifier: Apache-2.0"""

import ctypes
import json
import os

from .library import call, check_file


def cost_features(records, target=None, threads=None):
    """Measurements in the file of tuning records, as the JSON of docs/spec/features.md."""
    check_file(records, "records")
    text = ctypes.c_void_p()
    call("heddle_cost_features", os.fsencode(records), target.encode() if target else None,
         threads or 0, ctypes.byref(text))
    try:
        return json.loads(call("heddle_text_str", text))
    finally:
        call("heddle_text_destroy", text)
