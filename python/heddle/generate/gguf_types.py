"""gguf_types: blocks of numbers of llama.cpp's files as codes with scales.

A weight is scale * (code - zero). Blocks are those of ggml-common.h: scales of f16, and in types of
256 numbers ("K") smaller ones of parts, integers that are multiplied with them.
SPDX-License-Identifier: Apache-2.0
"""

import dataclasses

import numpy as np

NON_LINEAR = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
FLOAT4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12])  # halves


@dataclasses.dataclass
class Codes:
    """Codes, uint8 [rows, elements], of so many bits; scales and zeros, f32 [rows, parts], of equal
    parts of a row. No zeros are the middle code."""

    bits: int
    codes: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None = None

    def array(self):
        """The weights, f32 [rows, elements]."""
        zeros = self.middle if self.zeros is None else self.zeros[..., None]
        weights = (self.parts().astype(np.float32) - zeros) * self.scales[..., None]
        return weights.reshape(self.codes.shape)

    def rows(self, count):
        """The same codes, as so many rows."""
        zeros = None if self.zeros is None else self.zeros.reshape(count, -1)
        return Codes(self.bits, self.codes.reshape(count, -1), self.scales.reshape(count, -1),
                     zeros)

    @property
    def middle(self):
        return 1 << self.bits - 1

    @property
    def part(self):
        """Elements with a scale of their own."""
        return self.codes.shape[1] // self.scales.shape[1]

    def parts(self):
        """Codes, uint8 [rows, parts, elements]."""
        return self.codes.reshape(*self.scales.shape, -1)

    def packed(self):
        """Codes as MatMulNBits has them: uint8 [rows, parts, bytes]."""
        together = self.codes.reshape(*self.scales.shape, -1, 8 // self.bits)
        made = together[..., 0].copy()
        for i in range(1, 8 // self.bits):
            made |= together[..., i] << (i * self.bits)
        return made


def _affine(bits, codes, scales, least):
    """Codes of scale * code + least."""
    parts, none = codes.reshape(*scales.shape, -1), scales == 0
    parts = np.where(none[..., None], 0, parts)  # then least is -scale * (0 - 1)
    zeros = np.where(none, 1, -least / np.where(none, 1, scales))
    return Codes(bits, parts.reshape(codes.shape), np.where(none, -least, scales),
                 zeros.astype(np.float32))


def _half(blocks, at):
    return blocks[:, at:at + 2].copy().view("<f2").astype(np.float32)


def _nibbles(codes, width):
    """Low halves of `width` bytes, then their high ones, and so on."""
    groups = codes.reshape(len(codes), -1, width)
    return np.concatenate([groups & 15, groups >> 4], 2).reshape(len(codes), -1)


def _pairs(codes):
    """Fields of 2 bits: of 32 bytes the lowest, then the next ones, and so on."""
    groups = codes.reshape(len(codes), -1, 1, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    return (groups >> shifts & 3).reshape(len(codes), -1)


def _bits(codes):
    """Bits of each 32 bytes: the lowest of all, then the next ones, and so on."""
    return (codes.reshape(len(codes), 1, 32) >> np.arange(8, dtype=np.uint8)[:, None] & 1).reshape(
        len(codes), -1)


def _eights(packed):
    """Eight scales and eight minima of 6 bits, in 12 bytes."""
    low, middle, high = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    return (np.concatenate([low & 63, high & 15 | low >> 6 << 4], 1).astype(np.float32),
            np.concatenate([middle & 63, high >> 4 | middle >> 6 << 4], 1).astype(np.float32))


def _sixteens(packed):
    """Sixteen scales of 6 bits, in 12 bytes, less 32."""
    low = _nibbles(packed[:, :8], 8)
    high = (packed[:, 8:, None].swapaxes(1, 2) >> np.arange(0, 8, 2, dtype=np.uint8)[:, None]
            & 3).reshape(len(packed), -1)
    return (low | high << 4).astype(np.float32) - 32


def _fifth_bits(blocks, at):
    """A bit for each of 32 elements, as the 16 of a nibble."""
    return np.unpackbits(blocks[:, at:at + 4], axis=1, bitorder="little") << 4


def _q4_0(blocks):
    return Codes(4, _nibbles(blocks[:, 2:], 16), _half(blocks, 0))


def _q4_1(blocks):
    return _affine(4, _nibbles(blocks[:, 4:], 16), _half(blocks, 0), _half(blocks, 2))


def _q5_0(blocks):
    codes = _nibbles(blocks[:, 6:], 16) | _fifth_bits(blocks, 2)
    return Codes(8, codes + np.uint8(128 - 16), _half(blocks, 0))


def _q5_1(blocks):
    codes = _nibbles(blocks[:, 8:], 16) | _fifth_bits(blocks, 4)
    return _affine(8, codes, _half(blocks, 0), _half(blocks, 2))


def _q8_0(blocks):
    return Codes(8, blocks[:, 2:] ^ 128, _half(blocks, 0))


def _q2_k(blocks):
    small = blocks[:, :16]
    return _affine(2, _pairs(blocks[:, 16:80]), _half(blocks, 80) * (small & 15),
                   -_half(blocks, 82) * (small >> 4))


def _q3_k(blocks):
    codes = _pairs(blocks[:, 32:96]) | _bits(blocks[:, :32]) << 2
    return Codes(4, codes + np.uint8(8 - 4), _half(blocks, 108) * _sixteens(blocks[:, 96:108]))


def _q4_k(blocks):
    scales, least = _eights(blocks[:, 4:16])
    return _affine(4, _nibbles(blocks[:, 16:], 32), _half(blocks, 0) * scales,
                   -_half(blocks, 2) * least)


def _q5_k(blocks):
    scales, least = _eights(blocks[:, 4:16])
    codes = _nibbles(blocks[:, 48:], 32) | _bits(blocks[:, 16:48]) << 4
    return _affine(8, codes, _half(blocks, 0) * scales, -_half(blocks, 2) * least)


def _q6_k(blocks):
    codes = _nibbles(blocks[:, :128], 64) | _pairs(blocks[:, 128:192]) << 4
    scales = blocks[:, 192:208].view(np.int8)
    return Codes(8, codes + np.uint8(128 - 32), _half(blocks, 208) * scales)


def _iq4_nl(blocks):
    codes = NON_LINEAR[_nibbles(blocks[:, 2:], 16)] + 128
    return Codes(8, codes.astype(np.uint8), _half(blocks, 0))


def _iq4_xs(blocks):
    high = blocks[:, 2:4].copy().view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = blocks[:, 4:8, None] >> np.array([0, 4], np.uint8) & 15
    scales = (low.reshape(len(blocks), -1) | high.astype(np.uint8) << 4).astype(np.float32) - 32
    codes = NON_LINEAR[_nibbles(blocks[:, 8:], 16)] + 128
    return Codes(8, codes.astype(np.uint8), _half(blocks, 0) * scales)


def _mxfp4(blocks):
    codes = FLOAT4[_nibbles(blocks[:, 1:], 16)] + 128
    scales = np.ldexp(np.float32(1), blocks[:, :1].astype(int) - 128)
    return Codes(8, codes.astype(np.uint8), scales)


# Number -> name, elements and bytes of a block, what makes Codes of blocks; of plain types nothing.
TYPES = {0: ("F32", 1, 4, None), 1: ("F16", 1, 2, None), 30: ("BF16", 1, 2, None),
         2: ("Q4_0", 32, 18, _q4_0), 3: ("Q4_1", 32, 20, _q4_1), 6: ("Q5_0", 32, 22, _q5_0),
         7: ("Q5_1", 32, 24, _q5_1), 8: ("Q8_0", 32, 34, _q8_0), 10: ("Q2_K", 256, 84, _q2_k),
         11: ("Q3_K", 256, 110, _q3_k), 12: ("Q4_K", 256, 144, _q4_k),
         13: ("Q5_K", 256, 176, _q5_k), 14: ("Q6_K", 256, 210, _q6_k),
         20: ("IQ4_NL", 32, 18, _iq4_nl), 23: ("IQ4_XS", 256, 136, _iq4_xs),
         39: ("MXFP4", 32, 17, _mxfp4)}
OTHER_TYPES = {9: "Q8_1", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
               21: "IQ3_S", 22: "IQ2_S", 29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0"}
