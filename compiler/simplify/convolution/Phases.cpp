// Phases: y[o] = sum over k of x[(o + low - k d) / s] w[k], one phase o = s u + v after the other.
//
// Let v + low = s q + r. With a stride, d is 1 and only places k = s t + r meet x: T of them, and
//
//     y[s u + v] = sum over t of x[u + q - t] w[s t + r],
//
// a convolution of stride 1 with these places from the last to the first and T - 1 - q as border.
// Without a stride there is one phase, and its border is (K - 1) d - low. No place is computed that
// a phase does not have, unlike in a convolution of all phases at once.
//
// Phases of columns are concatenated as channels, those of rows as columns: in memory that is where
// they belong, so kernels can store them in place.

#include "compiler/simplify/convolution/Phases.h"

#include "compiler/graph/edit/Build.h"

using namespace mlir;

namespace heddle::simplify {

using graph::Build;
using graph::Dim;
using graph::dimsOf;
using graph::DimVector;
using Ints = SmallVector<int64_t>;

namespace {
/// Along one dimension of space.
struct Phase {
  int64_t first = 0, taps = 0; // places of the window: first + stride * t
  int64_t low = 0, high = 0;   // the border
  Dim count;                   // positions
};

class Phases {
public:
  Phases(OpBuilder &builder, graph::ConvTransposeOp op)
      : build(builder, op), op(op), x(dimsOf(op.getX())), w(dimsOf(op.getW())),
        y(dimsOf(op.getResult())) {}

  Value result() {
    size_t spatial = x.size() - 2;
    for (size_t d = 0; d < spatial; ++d) {
      std::optional<SmallVector<Phase>> found = phasesOf(d);
      if (!found)
        return {};
      phases.push_back(*found);
    }
    for (const Dim &size : {x.back(), y.back()})
      if (!size.constant())
        return {};
    return cropped(along(0, {}));
  }

private:
  std::optional<SmallVector<Phase>> phasesOf(size_t d) {
    int64_t stride = op.getStrides()[d], dilation = op.getDilations()[d], low = op.getLow()[d];
    auto window = w[d + 2].constant();
    if (!window || (stride > 1 && dilation > 1))
      return std::nullopt;
    SmallVector<Phase> found;
    for (int64_t v = 0; v < stride; ++v) {
      Phase phase;
      int64_t shift = (v + low) / stride;
      phase.first = (v + low) % stride;
      phase.taps = *window > phase.first ? llvm::divideCeil(*window - phase.first, stride) : 0;
      phase.count = y[d + 1].ceilDiv(Dim(stride));
      auto high = (phase.count - x[d + 1] + Dim(shift)).constant();
      phase.low = (phase.taps - 1) * dilation - shift;
      if (phase.taps > 0 && (!high || *high < 0 || phase.low < 0))
        return std::nullopt;
      phase.high = high.value_or(0);
      found.push_back(phase);
    }
    return found;
  }

  /// The phases from dimension d on, of those before it that are chosen.
  Value along(size_t d, ArrayRef<Phase> chosen) {
    if (d == phases.size())
      return convolve(chosen);
    SmallVector<Value> parts;
    for (const Phase &phase : phases[d]) {
      SmallVector<Phase> now(chosen);
      now.push_back(phase);
      parts.push_back(along(d + 1, now));
    }
    if (parts.size() == 1)
      return parts[0];
    return build.make<graph::ConcatOp>(parts, static_cast<uint64_t>(d + 2));
  }

  Value convolve(ArrayRef<Phase> chosen) {
    DimVector sizes{x[0]};
    Ints low, high, ones(chosen.size(), 1);
    for (const Phase &phase : chosen) {
      sizes.push_back(phase.count);
      low.push_back(phase.low);
      high.push_back(phase.high);
    }
    sizes.push_back(y.back());
    Type element = graph::elementOf(op.getResult());
    if (llvm::any_of(chosen, [](const Phase &phase) { return phase.taps == 0; }))
      return build.full(sizes, element, 0);
    if (isProduct(chosen))
      return build.make<graph::MatmulOp>(graph::tensorOf(op.getContext(), sizes, element),
                                         op.getX(), matrixOf(chosen));
    return build.typed<graph::ConvOp>(sizes, element, op.getX(), filtersOf(chosen), ones,
                                      op.getDilations(), low, high, op.getGroups(),
                                      /*channels_last=*/true);
  }

  /// Whether each pixel of the phase follows from one of x, so that filters need no other order.
  bool isProduct(ArrayRef<Phase> chosen) {
    return op.getGroups() == 1 && llvm::all_of(chosen, [](const Phase &phase) {
             return phase.taps == 1 && phase.low == 0 && phase.high == 0;
           });
  }

  /// [1..., c, o]
  Value matrixOf(ArrayRef<Phase> chosen) {
    DimVector matrix(chosen.size(), Dim(1));
    matrix.append({w[0], w[1]});
    return build.reshape(tapsOf(chosen), matrix);
  }

  /// [groups * c, o, window...] -> [groups * o, c, taps...]
  Value filtersOf(ArrayRef<Phase> chosen) {
    Value taps = tapsOf(chosen);
    DimVector sizes = dimsOf(taps);
    ArrayRef<Dim> window = ArrayRef<Dim>(sizes).drop_front(2);
    Dim groups(op.getGroups()), perGroup = w[0].floorDiv(groups);
    DimVector apart{groups, perGroup, w[1]}, made{groups * w[1], perGroup};
    Ints swapped{0, 2, 1};
    for (const Dim &size : window) {
      swapped.push_back(apart.size());
      apart.push_back(size);
      made.push_back(size);
    }
    return build.reshape(build.transpose(build.reshape(taps, apart), swapped), made);
  }

  /// The places of the window that a phase has, backwards.
  Value tapsOf(ArrayRef<Phase> chosen) {
    DimVector starts{Dim(0), Dim(0)}, sizes{w[0], w[1]};
    Ints steps{1, 1};
    for (auto [d, phase] : llvm::enumerate(chosen)) {
      int64_t stride = op.getStrides()[d];
      starts.push_back(Dim(phase.first + (phase.taps - 1) * stride));
      sizes.push_back(Dim(phase.taps));
      steps.push_back(-stride);
    }
    return build.slice(op.getW(), starts, sizes, steps);
  }

  /// [n, u..., the phases of the next dimension and its columns..., ...] is y's order, with as many
  /// phases of the last position as of all others.
  Value cropped(Value value) {
    DimVector whole{x[0]};
    for (size_t d = 0; d < phases.size(); ++d)
      whole.push_back(phases[d][0].count * Dim(op.getStrides()[d]));
    whole.push_back(y.back());
    DimVector none(whole.size(), Dim(0));
    return build.slice(build.reshape(value, whole), none, y, Ints(whole.size(), 1));
  }

  Build build;
  graph::ConvTransposeOp op;
  DimVector x, w, y;
  SmallVector<SmallVector<Phase>> phases;
};
} // namespace

Value convolvePhases(OpBuilder &builder, graph::ConvTransposeOp op) {
  return Phases(builder, op).result();
}

} // namespace heddle::simplify
