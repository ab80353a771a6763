"""What a plan of a model comes to."""

import json
import sys

from bench.models import tool


def plan_of(path, without, threads, *options):
    """(kernels, launches, bytes that kernels read and write, weights apart) of one run."""
    layers = ("--without", without) if without else ()
    done = tool.run_heddle("explain", path, "--json", "--threads", str(threads), *layers, *options)
    if done.status:
        sys.exit(done.errors.strip())
    groups = json.loads(done.output)["groups"]
    regions = [group["region"] for group in groups if group.get("region") is not None]
    moved = sum(group["read_bytes"] + group["written_bytes"] - group["weight_bytes"]
                for group in groups)
    return len(groups), len(groups) - len(regions) + len(set(regions)), moved
