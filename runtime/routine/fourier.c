/* fourier.c: discrete Fourier transforms of any length in O(n log n): Stockham's algorithm with the
 * prime factors of the length as radices, and Bluestein's where one of them is large. Numbers are
 * doubles, real and imaginary parts apart. Several transforms lie interleaved, so that the inner
 * loops are long from the first stage on. SPDX-License-Identifier: Apache-2.0 */
#include "heddle/runtime.h"
#include "runtime/routine/routine.h"

#include <string.h>

enum { TOGETHER = 8, LARGEST_RADIX = 23, MOST_STAGES = 64 };

/* A transform of a length whose prime factors are at most LARGEST_RADIX. */
typedef struct plan {
  int64_t length;
  double *cosines, *sines; /* e^(-2 pi i t / length), t < length */
  int64_t stages, radices[MOST_STAGES];
} plan_t;

typedef struct fourier {
  heddle_view_t result, x;
  plan_t plan;                       /* of `length`, or of Bluestein's convolution */
  double *chirpRe, *chirpIm;         /* e^(-pi i t^2 / length), or NULL */
  double *filterRe, *filterIm;       /* the transform of its conjugate */
  int64_t length, size, frequencies; /* of x and of the result along the axis */
  int64_t inner, parts, count;
  bool inverse, onesided;
} fourier_t;

/* e^(-2 pi i t / length), 0 <= t < length, by Taylor's series within an eighth of a turn. */
static void root(int64_t t, int64_t length, double *re, double *im) {
  static const double kQuarter = 1.57079632679489661923;
  int64_t quarter = (4 * t + length / 2) / length;
  double x = kQuarter * (double)(4 * t - quarter * length) / (double)length, square = x * x;
  double c = 0, s = 0;
  for (int n = 18; n > 0; n -= 2) {
    c = 1 - square / (n * (n - 1)) * (n == 18 ? 1 : c);
    s = 1 - square / (n * (n + 1)) * (n == 18 ? 1 : s);
  }
  s *= x;
  quarter &= 3;
  *re = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
  *im = quarter == 0 ? -s : quarter == 1 ? -c : quarter == 2 ? s : c;
}

/* Roots of unity from about 2 sqrt(length) of them: one product each. */
static bool makeRoots(heddle_call_t *call, int64_t length, double **cosines, double **sines) {
  int64_t step = 1;
  while (step * step < length)
    step += step / 8 + 1;
  double *re = *cosines = heddle_routine_alloc(call, length, sizeof *re);
  double *im = *sines = heddle_routine_alloc(call, length, sizeof *im);
  double *fine = heddle_routine_alloc(call, step, 2 * sizeof *fine);
  if (!re || !im || !fine)
    return false;
  for (int64_t i = 0; i < step && i < length; ++i)
    root(i, length, fine + 2 * i, fine + 2 * i + 1);
  for (int64_t begin = 0; begin < length; begin += step) {
    double c, s;
    root(begin, length, &c, &s);
    int64_t count = length - begin < step ? length - begin : step;
    for (int64_t i = 0; i < count; ++i) {
      re[begin + i] = c * fine[2 * i] - s * fine[2 * i + 1];
      im[begin + i] = c * fine[2 * i + 1] + s * fine[2 * i];
    }
  }
  return true;
}

/* False where a prime factor is too large, or there is no memory. */
static bool factor(plan_t *plan, int64_t length) {
  plan->length = length;
  plan->stages = 0;
  int64_t rest = length;
  for (; rest % 4 == 0; rest /= 4)
    plan->radices[plan->stages++] = 4;
  for (int64_t radix = 2; radix <= LARGEST_RADIX; ++radix)
    for (; rest % radix == 0; rest /= radix)
      plan->radices[plan->stages++] = radix;
  return rest == 1;
}

/* One stage on transforms of length n, of which `stride` numbers lie side by side. */
typedef struct stage {
  const plan_t *plan;
  int64_t n, stride;
  const double *re, *im;
  double *toRe, *toIm;
} stage_t;

static void stageOf4(const stage_t *s) {
  int64_t quarter = s->n / 4, stride = s->stride, part = quarter * stride;
  int64_t turn = s->plan->length / s->n;
  for (int64_t p = 0; p < quarter; ++p) {
    double w[6];
    for (int64_t j = 1; j < 4; ++j) {
      w[2 * j - 2] = s->plan->cosines[j * p * turn];
      w[2 * j - 1] = s->plan->sines[j * p * turn];
    }
    const double *re = s->re + p * stride, *im = s->im + p * stride;
    double *restrict toRe = s->toRe + 4 * p * stride, *restrict toIm = s->toIm + 4 * p * stride;
    for (int64_t q = 0; q < stride; ++q) {
      double aRe = re[q] + re[q + 2 * part], aIm = im[q] + im[q + 2 * part];
      double bRe = re[q] - re[q + 2 * part], bIm = im[q] - im[q + 2 * part];
      double cRe = re[q + part] + re[q + 3 * part], cIm = im[q + part] + im[q + 3 * part];
      double dRe = im[q + part] - im[q + 3 * part], dIm = re[q + 3 * part] - re[q + part];
      toRe[q] = aRe + cRe;
      toIm[q] = aIm + cIm;
      double eRe = bRe + dRe, eIm = bIm + dIm, fRe = aRe - cRe, fIm = aIm - cIm;
      double gRe = bRe - dRe, gIm = bIm - dIm;
      toRe[q + stride] = eRe * w[0] - eIm * w[1];
      toIm[q + stride] = eRe * w[1] + eIm * w[0];
      toRe[q + 2 * stride] = fRe * w[2] - fIm * w[3];
      toIm[q + 2 * stride] = fRe * w[3] + fIm * w[2];
      toRe[q + 3 * stride] = gRe * w[4] - gIm * w[5];
      toIm[q + 3 * stride] = gRe * w[5] + gIm * w[4];
    }
  }
}

static void stageOf2(const stage_t *s) {
  int64_t half = s->n / 2, stride = s->stride, part = half * stride;
  int64_t turn = s->plan->length / s->n;
  for (int64_t p = 0; p < half; ++p) {
    double c = s->plan->cosines[p * turn], d = s->plan->sines[p * turn];
    const double *re = s->re + p * stride, *im = s->im + p * stride;
    double *restrict toRe = s->toRe + 2 * p * stride, *restrict toIm = s->toIm + 2 * p * stride;
    for (int64_t q = 0; q < stride; ++q) {
      double bRe = re[q] - re[q + part], bIm = im[q] - im[q + part];
      toRe[q] = re[q] + re[q + part];
      toIm[q] = im[q] + im[q + part];
      toRe[q + stride] = bRe * c - bIm * d;
      toIm[q + stride] = bRe * d + bIm * c;
    }
  }
}

static void stageOfAny(const stage_t *s, int64_t radix) {
  int64_t m = s->n / radix, stride = s->stride, part = m * stride;
  int64_t length = s->plan->length, turn = length / s->n, full = length / radix;
  for (int64_t p = 0; p < m; ++p)
    for (int64_t j = 0; j < radix; ++j) {
      double *restrict toRe = s->toRe + (radix * p + j) * stride;
      double *restrict toIm = s->toIm + (radix * p + j) * stride;
      memset(toRe, 0, (size_t)stride * sizeof *toRe);
      memset(toIm, 0, (size_t)stride * sizeof *toIm);
      for (int64_t k = 0; k < radix; ++k) {
        int64_t place = (j * p * turn + j * k % radix * full) % length;
        double c = s->plan->cosines[place], d = s->plan->sines[place];
        const double *re = s->re + p * stride + k * part, *im = s->im + p * stride + k * part;
        for (int64_t q = 0; q < stride; ++q) {
          toRe[q] += re[q] * c - im[q] * d;
          toIm[q] += re[q] * d + im[q] * c;
        }
      }
    }
}

/* Transforms `together` interleaved signals in `a`, with `b` as room; the result is in the one that
 * is returned. Both have real parts first, then as many imaginary ones. */
static double *transform(const plan_t *plan, int64_t together, double *a, double *b) {
  int64_t total = plan->length * together;
  stage_t stage = {plan, plan->length, together, NULL, NULL, NULL, NULL};
  for (int64_t i = 0; i < plan->stages; ++i) {
    int64_t radix = plan->radices[i];
    stage.re = a;
    stage.im = a + total;
    stage.toRe = b;
    stage.toIm = b + total;
    if (radix == 4)
      stageOf4(&stage);
    else if (radix == 2)
      stageOf2(&stage);
    else
      stageOfAny(&stage, radix);
    stage.n /= radix;
    stage.stride *= radix;
    double *swapped = a;
    a = b;
    b = swapped;
  }
  return a;
}

/* Real and imaginary part of number k of what is to be transformed: an inverse transform is one
 * with both exchanged, of which a real result has the other half as conjugates. */
static void readNumber(const fourier_t *op, int64_t signal, int64_t k, double *re, double *im) {
  bool isReal = op->inverse && op->onesided, isMirror = isReal && 2 * k > op->length;
  int64_t place = isMirror ? op->length - k : k;
  *re = *im = 0;
  if (place >= op->size)
    return;
  int64_t at = ((signal / op->inner * op->size + place) * op->inner + signal % op->inner);
  bool isDouble = op->x.dtype == HEDDLE_FLOAT64, isComplex = op->parts == 2;
  at *= op->parts;
  double c = isDouble ? ((double *)op->x.data)[at] : ((float *)op->x.data)[at], d = 0;
  if (isComplex && (op->inverse || !op->onesided))
    d = isDouble ? ((double *)op->x.data)[at + 1] : ((float *)op->x.data)[at + 1];
  if (isReal && (k == 0 || 2 * k == op->length))
    d = 0;
  d = isMirror ? -d : d;
  *re = op->inverse ? d : c;
  *im = op->inverse ? c : d;
}

static void writeNumber(const fourier_t *op, int64_t signal, int64_t k, double re, double im) {
  bool isReal = op->inverse && op->onesided;
  int64_t at = (signal / op->inner * op->frequencies + k) * op->inner + signal % op->inner;
  double scale = op->inverse ? 1.0 / (double)op->length : 1;
  double c = (op->inverse ? im : re) * scale, d = (op->inverse ? re : im) * scale;
  at *= isReal ? 1 : 2;
  if (op->x.dtype == HEDDLE_FLOAT64) {
    ((double *)op->result.data)[at] = c;
    if (!isReal)
      ((double *)op->result.data)[at + 1] = d;
  } else {
    ((float *)op->result.data)[at] = (float)c;
    if (!isReal)
      ((float *)op->result.data)[at + 1] = (float)d;
  }
}

/* A transform of any length as a convolution with a chirp. */
static double *chirped(const fourier_t *op, int64_t together, double *a, double *b) {
  int64_t padded = op->plan.length, total = padded * together;
  for (int64_t k = 0; k < op->length; ++k)
    for (int64_t v = 0, i = k * together; v < together; ++v, ++i) {
      double re = a[i], im = a[total + i];
      a[i] = re * op->chirpRe[k] - im * op->chirpIm[k];
      a[total + i] = re * op->chirpIm[k] + im * op->chirpRe[k];
    }
  double *y = transform(&op->plan, together, a, b), *other = y == a ? b : a;
  for (int64_t k = 0; k < padded; ++k) /* with both parts exchanged, for the way back */
    for (int64_t v = 0, i = k * together; v < together; ++v, ++i) {
      double re = y[i], im = y[total + i];
      y[total + i] = re * op->filterRe[k] - im * op->filterIm[k];
      y[i] = re * op->filterIm[k] + im * op->filterRe[k];
    }
  double *z = transform(&op->plan, together, y, other);
  for (int64_t k = 0; k < op->length; ++k)
    for (int64_t v = 0, i = k * together; v < together; ++v, ++i) {
      double re = z[total + i] / (double)padded, im = z[i] / (double)padded;
      z[i] = re * op->chirpRe[k] - im * op->chirpIm[k];
      z[total + i] = re * op->chirpIm[k] + im * op->chirpRe[k];
    }
  return z;
}

static void fourierRows(const int64_t *args, int64_t begin, int64_t end, uint8_t *scratch) {
  const fourier_t *op = (const fourier_t *)(intptr_t)args[0];
  int64_t length = op->plan.length;
  double *a = (double *)scratch, *b = a + 2 * length * TOGETHER;
  for (int64_t task = begin; task < end; ++task) {
    int64_t first = task * TOGETHER, together = op->count - first;
    together = together < TOGETHER ? together : TOGETHER;
    int64_t total = length * together;
    for (int64_t k = 0; k < op->length; ++k)
      for (int64_t v = 0, i = k * together; v < together; ++v, ++i)
        readNumber(op, first + v, k, a + i, a + total + i);
    if (op->length < length) {
      size_t bytes = (size_t)((length - op->length) * together) * sizeof *a;
      memset(a + op->length * together, 0, bytes);
      memset(a + total + op->length * together, 0, bytes);
    }
    const double *y =
        op->chirpRe ? chirped(op, together, a, b) : transform(&op->plan, together, a, b);
    for (int64_t k = 0; k < op->frequencies; ++k)
      for (int64_t v = 0, i = k * together; v < together; ++v, ++i)
        writeNumber(op, first + v, k, y[i], y[total + i]);
  }
}

/* Tables for a length with a large prime factor. */
static bool makeChirp(heddle_call_t *call, fourier_t *op) {
  int64_t padded = 1, n = op->length;
  double *re, *im;
  while (padded < 2 * n - 1)
    padded *= 2;
  factor(&op->plan, padded);
  op->chirpRe = heddle_routine_alloc(call, n, sizeof(double));
  op->chirpIm = heddle_routine_alloc(call, n, sizeof(double));
  double *a = heddle_routine_alloc(call, padded, 2 * sizeof *a);
  double *b = heddle_routine_alloc(call, padded, 2 * sizeof *b);
  if (!makeRoots(call, padded, &op->plan.cosines, &op->plan.sines) || !op->chirpRe ||
      !op->chirpIm || !a || !b || !makeRoots(call, 2 * n, &re, &im))
    return false;
  for (int64_t t = 0, square = 0; t < n; ++t) { /* t^2 mod 2 n, which may be long */
    op->chirpRe[t] = re[square];
    op->chirpIm[t] = im[square];
    square = (square + 2 * t + 1) % (2 * n);
  }
  memset(a, 0, 2 * (size_t)padded * sizeof *a);
  for (int64_t t = 0; t < n; ++t) {
    int64_t mirror = t ? padded - t : 0;
    a[t] = a[mirror] = op->chirpRe[t];
    a[padded + t] = a[padded + mirror] = -op->chirpIm[t];
  }
  op->filterRe = transform(&op->plan, 1, a, b);
  op->filterIm = op->filterRe + padded;
  return true;
}

void heddle_routine_fourier(heddle_call_t *call, int64_t *frame) {
  fourier_t op = {0};
  int64_t message = *frame++;
  op.result = heddle_view_next(&frame);
  int64_t axis = *frame++;
  op.inverse = *frame++;
  op.length = *frame++;
  op.onesided = *frame++;
  op.x = heddle_view_next(&frame);
  int64_t last = op.x.rank - 1, total = heddle_view_count(&op.result, 0, op.result.rank);
  op.parts = op.x.dims[last];
  op.size = op.x.dims[axis];
  op.frequencies = op.result.dims[axis];
  op.inner = heddle_view_count(&op.x, axis + 1, last);
  if (total == 0)
    return;
  if (op.length < 1 || op.length > INT64_MAX / 16 || op.frequencies > op.length) {
    call->fail(call, message, op.length, op.frequencies);
    return;
  }
  op.count = heddle_view_count(&op.x, 0, axis) * op.inner;
  if (factor(&op.plan, op.length) ? !makeRoots(call, op.length, &op.plan.cosines, &op.plan.sines)
                                  : !makeChirp(call, &op))
    return;
  int64_t scratch, args[1] = {(int64_t)(intptr_t)&op};
  if (__builtin_mul_overflow(op.plan.length, 4 * TOGETHER * (int64_t)sizeof(double), &scratch))
    scratch = INT64_MAX;
  call->launch(call, fourierRows, args, (op.count + TOGETHER - 1) / TOGETHER, scratch);
}
