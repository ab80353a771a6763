"""A few seconds of stress.py."""

import pytest

import stress

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "tokenizers"):
    pytest.importorskip(package)


def test_clients_that_come_and_leave():
    complaints, counts = stress.run(seconds=6, clients=12)
    assert not complaints, complaints[:5]
    assert counts["texts"] and counts["left"]
