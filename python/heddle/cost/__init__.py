"""cost: models that learn from tuning records how long a candidate for a group takes.

`features(path)` gives what a file of records has measured as numbers (docs/spec/features.md);
`Corpus` keeps them as arrays. SPDX-License-Identifier: Apache-2.0
"""

from .corpus import FEATURES_VERSION, Corpus, features

__all__ = ["FEATURES_VERSION", "Corpus", "features"]
