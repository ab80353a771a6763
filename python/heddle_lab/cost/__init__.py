"""cost: models that learn from tuning records how long a candidate for a group takes.

`Corpus` keeps as arrays what `heddle.cost_features` gives of a file of records
(docs/spec/features.md). SPDX-License-Identifier: Apache-2.0
"""

from .corpus import FEATURES_VERSION, Corpus

__all__ = ["FEATURES_VERSION", "Corpus"]
