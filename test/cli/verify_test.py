"""heddle verify: an artefact is told from one that was changed on its way."""

import heddle
import numpy as np
import pytest

from command import OK, REFUSED, USAGE, dense, dense_model, needs_heddle, save
from command import heddle as command

pytestmark = needs_heddle


@pytest.fixture(scope="module")
def artefact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    path = folder / "m.so"
    done = command("compile", save(dense_model(), folder / "m.onnx"), "-o", path)
    assert done.status == OK, done.errors
    return path


def test_what_was_compiled_is_whole(artefact):
    done = command("verify", artefact)
    assert done.status == OK and done.output == f"{artefact}: whole\n"
    x = np.ones((2, 3), np.float32)
    y, = heddle.load(artefact, verify=True).run(None, {"x": x})
    np.testing.assert_allclose(y, dense(x), 1e-5)


@pytest.mark.parametrize("place", [0, 700, 0.3, 0.9, -39, -1])
def test_one_changed_byte_is_seen(artefact, tmp_path, place):
    content = bytearray(artefact.read_bytes())
    at = int(place * len(content)) if isinstance(place, float) else place
    content[at] ^= 4
    changed = tmp_path / "changed.so"
    changed.write_bytes(content)
    done = command("verify", artefact, changed, "--json")
    assert done.status == REFUSED
    assert [file["whole"] for file in done.json["files"]] == [True, False]
    with pytest.raises(heddle.RefusedError, match="changed.so"):
        heddle.load(changed, verify=True)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"x" * 4096])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.so"
    path.write_bytes(content)
    done = command("verify", path)
    assert done.status == REFUSED and "has no digest at its end" in done.errors


def test_no_file(tmp_path):
    done = command("verify", tmp_path / "none.so")
    assert done.status == USAGE and "No such file" in done.errors
