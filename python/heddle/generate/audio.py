"""audio: sound as Whisper hears it: files of WAV, and the logarithm of its mel spectrogram.

The arithmetic, and where it rounds, is that of transformers' WhisperFeatureExtractor in NumPy.
SPDX-License-Identifier: Apache-2.0
"""

import functools
import os
import wave
from dataclasses import dataclass

import numpy as np

from ..library import RefusedError, UsageError

FLOOR, RANGE = 1e-10, 8.0  # of powers; of their logarithms below the largest one
BEND, BEND_MEL, STEP = 1000.0, 15.0, 27 / np.log(6.4)  # Slaney's scale: linear, then logarithmic
HIGHEST = 8000.0  # Hz
MOST = 1 << 26  # numbers of a spectrogram on its way


@dataclass(frozen=True)
class Ear:
    """Sizes of a spectrogram, with the names of preprocessor_config.json."""

    feature_size: int = 80
    sampling_rate: int = 16000
    hop_length: int = 160
    chunk_length: int = 30  # seconds
    n_fft: int = 400

    @property
    def samples(self):
        return self.chunk_length * self.sampling_rate


def ear_of(values, mels, frames, where):
    """The Ear of a preprocessor_config.json, which has to fit the model's sizes."""
    made = Ear(**{"feature_size": mels, **{
        name: value for name, value in values.items()
        if name in Ear.__dataclass_fields__ and value is not None}})
    for name in Ear.__dataclass_fields__:
        value = getattr(made, name)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
            raise RefusedError(f"{where}: '{name}' is {value!r}, but must be a number from 1 on")
    for name, wrong in (("dither", values.get("dither")), ("do_normalize",
                                                           values.get("do_normalize"))):
        if wrong:
            raise RefusedError(f"{where}: '{name}' is {wrong!r}, which is not supported")
    if made.feature_size != mels or made.samples // made.hop_length != frames:
        raise RefusedError(f"{where}: says {made.feature_size} x "
                           f"{made.samples // made.hop_length}, but config.json {mels} x {frames} "
                           "numbers of a spectrogram")
    if frames * made.n_fft > MOST or made.samples > MOST:
        raise RefusedError(f"{where}: {frames} windows of {made.n_fft} samples are more than this "
                           f"takes, {MOST} numbers")
    return made


def _check_length(count, ear):
    if count > ear.samples:
        raise UsageError(f"the sound has {count / ear.sampling_rate:.1f} seconds, but the model "
                         f"hears {ear.chunk_length} at once; cut it into such pieces")


def read_wav(path, ear):
    """Samples of a WAV file as f32 from -1 to 1, the mean of its channels."""
    path, rate = os.fspath(path), ear.sampling_rate
    try:
        with wave.open(path, "rb") as file:
            channels, width, found = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if found == rate:
                _check_length(file.getnframes(), ear)
            data = file.readframes(ear.samples)
    except OSError as error:
        raise UsageError(f"'{path}': cannot be read: {error.strerror}") from error
    except (wave.Error, EOFError) as error:
        raise RefusedError(f"'{path}': is no WAV file of integers: {error or 'it ends early'}\n"
                           f"note: 'ffmpeg -i FILE -ar {rate} -ac 1 -c:a pcm_s16le NEW.wav' makes "
                           "one") from error
    if found != rate:
        raise RefusedError(f"'{path}': has {found} samples a second, but the model hears {rate}"
                           f"\nnote: 'ffmpeg -i {path} -ar {rate} NEW.wav' makes a file of these")
    if len(data) % (width * channels):
        raise RefusedError(f"'{path}': is not whole: its last sample lacks bytes")
    if width == 1:
        samples = np.frombuffer(data, np.uint8).astype(np.float32) - 128
    else:  # 3 bytes become the upper ones of 4
        raw = np.frombuffer(data, np.uint8).reshape(-1, width)
        size = 4 if width == 3 else width
        whole = np.zeros((len(raw), size), np.uint8)
        whole[:, size - width:] = raw
        samples = whole.view(f"<i{size}")[:, 0].astype(np.float32)
        width = size
    samples /= np.float32(1 << (8 * width - 1))
    return samples if channels == 1 else samples.reshape(-1, channels).mean(1, dtype=np.float32)


def _hertz(mel):
    return np.where(mel < BEND_MEL, 200 * mel / 3,
                    BEND * np.exp((np.maximum(mel, BEND_MEL) - BEND_MEL) / STEP))


@functools.cache
def _filters(ear):
    """Triangles [frequencies, mels] over the frequencies, each of area 1 in hertz."""
    top = BEND_MEL + np.log(HIGHEST / BEND) * STEP
    edges = _hertz(np.linspace(0, top, ear.feature_size + 2))
    frequencies = np.linspace(0, ear.sampling_rate // 2, 1 + ear.n_fft // 2)
    slopes = edges - frequencies[:, None]
    widths = np.diff(edges)
    rises, falls = -slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]
    triangles = np.maximum(0, np.minimum(rises, falls))
    return triangles * (2 / (edges[2:] - edges[:-2]))


def log_mel(samples, ear):
    """The spectrogram [mels, frames] of samples, which silence follows up to the ear's length."""
    half = ear.n_fft // 2
    whole = np.zeros(ear.samples, np.float32)
    whole[:len(samples)] = samples
    whole = np.pad(whole, half, mode="reflect").astype(np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(whole, ear.n_fft)[::ear.hop_length]
    window = np.hanning(ear.n_fft + 1)[:-1]
    spectrum = np.fft.rfft(frames * window).astype(np.complex64)
    powers = np.abs(spectrum, dtype=np.float64)**2.0
    mels = np.log10(np.maximum(FLOOR, np.dot(_filters(ear).T, powers.T))).astype(np.float32)
    mels = mels[:, :-1]
    return (np.maximum(mels, mels.max() - np.float32(RANGE)) + np.float32(4)) / np.float32(4)


def heard(sound, ear):
    """The spectrogram of a WAV file, or of an array of samples at the ear's rate."""
    if isinstance(sound, (str, os.PathLike)):
        samples = read_wav(sound, ear)
    else:
        samples = np.asarray(sound)
        if samples.ndim != 1 or samples.dtype.kind != "f":
            raise UsageError("a sound must be the path of a WAV file, or an array of floats, its "
                             f"samples at {ear.sampling_rate} a second, not one of "
                             f"{samples.dtype}{list(samples.shape)}")
        samples = samples.astype(np.float32)
    if not len(samples):
        raise UsageError("the sound is empty: it has no samples")
    _check_length(len(samples), ear)
    if not np.isfinite(samples).all():
        raise UsageError("the sound has samples that are NaN or infinite")
    return log_mel(samples, ear)
