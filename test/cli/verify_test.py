"""heddle verify: an artefact is told from one that was changed on its way."""

import heddle
import numpy as np
import pytest

from command import REFUSED, dense, dense_model, fails, needs_heddle, ok, save

pytestmark = needs_heddle


@pytest.fixture(scope="module")
def artefact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verify")
    path = folder / "m.so"
    ok("compile", save(dense_model(), folder / "m.onnx"), "-o", path)
    return path


def test_what_was_compiled_is_whole(artefact):
    assert ok("verify", artefact).output == f"{artefact}: whole\n"
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
    done = fails("verify", artefact, changed, "--json", status=REFUSED)
    assert [file["whole"] for file in done.json["files"]] == [True, False]
    with pytest.raises(heddle.RefusedError, match="changed.so"):
        heddle.load(changed, verify=True)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"x" * 4096])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other.so"
    path.write_bytes(content)
    fails("verify", path, status=REFUSED, says="has no digest at its end")


def test_no_file(tmp_path):
    fails("verify", tmp_path / "none.so", says="No such file")
