"""Random ensembles of decision trees, as attributes of the ops of ai.onnx.ml."""

import numpy as np


def _nodes(count, depth, features, random):
    """Complete trees; leaves are the last 2 ** depth nodes of each."""
    inner, size = 2 ** depth - 1, 2 ** (depth + 1) - 1
    ids = np.tile(np.arange(size), count)
    isLeaf = ids >= inner
    return {
        "nodes_treeids": np.repeat(np.arange(count), size).tolist(),
        "nodes_nodeids": ids.tolist(),
        "nodes_featureids": np.where(isLeaf, 0, random.integers(0, features, ids.size)).tolist(),
        "nodes_values": np.where(isLeaf, 0, random.standard_normal(ids.size)).tolist(),
        "nodes_modes": np.where(isLeaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": np.where(isLeaf, 0, 2 * ids + 1).tolist(),
        "nodes_falsenodeids": np.where(isLeaf, 0, 2 * ids + 2).tolist(),
    }


def _leaves(stem, count, depth, targets, random):
    leaves = np.arange(2 ** depth - 1, 2 ** (depth + 1) - 1)
    places = {f"{stem}_treeids": np.repeat(np.arange(count), leaves.size),
              f"{stem}_nodeids": np.tile(leaves, count),
              f"{stem}_ids": np.repeat(np.arange(count) % targets, leaves.size)}
    return {name: each.tolist() for name, each in places.items()} | {
        f"{stem}_weights": random.standard_normal(count * leaves.size).tolist()}


def regressor(count, depth, features):
    """Attributes of TreeEnsembleRegressor."""
    random = np.random.default_rng(depth)
    return _nodes(count, depth, features, random) | {"n_targets": 1} | _leaves(
        "target", count, depth, 1, random)


def classifier(count, depth, features, classes):
    """Attributes of TreeEnsembleClassifier, each tree for one class as boosting makes them."""
    random = np.random.default_rng(depth)
    return _nodes(count, depth, features, random) | {
        "classlabels_int64s": list(range(classes)), "post_transform": "SOFTMAX"} | _leaves(
            "class", count, depth, classes, random)
