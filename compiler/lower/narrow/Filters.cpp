// Filters: packed rows of filters, register tiles of pixels by filters, and sums over lanes.

#include "compiler/lower/narrow/Filters.h"

#include "compiler/lower/contraction/Contraction.h"

using namespace mlir;

namespace heddle::lower {

NarrowFilters::NarrowFilters(const ProductLayout &layout)
    : RightOperand(layout), shape(layout.shape), element(layout.element),
      filters(*shape.columns.constant()), run(*shape.length.constant()) {}

void NarrowFilters::prepare() {
  if (auto constant = shape.b.getDefiningOp<graph::ConstantOp>())
    packConstant(constant);
  else
    emitPacking();
}

Value NarrowFilters::pointer() { return data >= 0 ? constant() : kernel.temporary(packed); }

Value NarrowFilters::constant() { return data >= 0 ? kernel.data(data) : Value(); }

/// [out, in, window...] -> [piece of the window][vector of the run][out][lanes].
void NarrowFilters::packConstant(graph::ConstantOp constant) {
  std::vector<char> storage;
  auto conv = cast<graph::ConvOp>(shape.root);
  ArrayRef<char> bytes = graph::constantBytes(constant.getValue(), storage);
  int64_t lanes = kernel.machine.lanes, terms = *shape.reduction.constant();
  int64_t channels = *graph::dimsOf(conv.getW())[1].constant(), taps = terms / channels;
  std::vector<char> packed(terms / run * vectorsOfRun() * filters * lanes * sizeof(float), 0);
  for (int64_t term = 0; term < terms; ++term) {
    int64_t piece = term / run, inRun = term % run;
    int64_t vector = piece * vectorsOfRun() + inRun / lanes;
    for (int64_t filter = 0; filter < filters; ++filter) {
      int64_t from = (filter * channels + term % channels) * taps + term / channels;
      int64_t to = (vector * filters + filter) * lanes + inRun % lanes;
      std::memcpy(packed.data() + to * sizeof(float), bytes.data() + from * sizeof(float),
                  sizeof(float));
    }
  }
  data = kernel.addData(std::move(packed));
}

/// A vector of a filter's row for each task and filter, number by number: they are few.
void NarrowFilters::emitPacking() {
  DimVector w = graph::dimsOf(cast<graph::ConvOp>(shape.root).getW());
  int64_t lanes = kernel.machine.lanes;
  Dim vectorsOfAll = shape.reduction.floorDiv(Dim(run)) * Dim(vectorsOfRun());
  packed = kernel.addTemporary(vectorsOfAll * Dim(filters * lanes * graph::bytesOf(element)));
  kernel.beginPhase();
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Value piece = code.div(task, code.number(vectorsOfRun()));
    Value inRun = code.mul(code.rem(task, code.number(vectorsOfRun())), code.number(lanes));
    Value end = code.min(code.number(lanes), code.sub(code.number(run), inRun));
    Value first = code.add(code.mul(piece, code.number(run)), inRun);
    Value inputs = kernel.dim(w[1]), taps = kernel.dim(shape.taps);
    Value weights = kernel.pointer(shape.b), target = kernel.temporary(packed);
    code.forEach(code.number(0), code.number(filters), 1, [&](Value filter) {
      Value to =
          code.mul(code.add(code.mul(task, code.number(filters)), filter), code.number(lanes));
      code.storeLanes(element, code.spread(code.constantOf(element, 0)), target, to, {});
      code.forEach(code.number(0), end, 1, [&](Value lane) {
        Value term = code.add(first, lane);
        Value input = code.add(code.mul(filter, inputs), code.rem(term, inputs));
        Value from = code.add(code.mul(input, taps), code.div(term, inputs));
        code.store(element, code.load(element, weights, from), target, code.add(to, lane));
      });
    });
  });
  kernel.endPhase(vectorsOfAll, vectorsOfAll * Dim(filters * lanes * 4));
}

/// One vector of the image for each pixel, from `place` of its run on, times one of each filter. Of
/// the fewer ones all are kept in registers, of the others one at a time.
Values NarrowFilters::step(ArrayRef<Value> pixels, Value panel, Value place, Value mask,
                           ValueRange sums) {
  Code &code = kernel.code();
  auto imageOf = [&](int64_t pixel) { return code.loadLanes(element, pixels[pixel], place, mask); };
  auto weightsOf = [&](int64_t filter) {
    Value shift = code.number(filter * code.lanes);
    Value at = code.add(code.mul(place, code.number(filters)), shift);
    return code.loadLanes(element, panel, at, {});
  };
  int64_t count = pixels.size();
  bool keepsImages = count < filters;
  Values kept, next(sums);
  for (int64_t i = 0; i < std::min(count, filters); ++i)
    kept.push_back(keepsImages ? imageOf(i) : weightsOf(i));
  for (int64_t i = 0; i < std::max(count, filters); ++i) {
    Value other = keepsImages ? weightsOf(i) : imageOf(i);
    for (auto [j, one] : llvm::enumerate(kept)) {
      int64_t at = keepsImages ? (int64_t)j * filters + i : i * filters + (int64_t)j;
      next[at] = code.b.create<math::FmaOp>(code.loc, one, other, next[at]);
    }
  }
  return next;
}

/// Sums a run, without reading what lies after it, which may be NaN, although it would meet zeros.
Values NarrowFilters::sumRun(const TileProduct &product, Value aShift, Value piece,
                             ValueRange sums) {
  Code &code = kernel.code();
  int64_t lanes = code.lanes, whole = run / lanes * lanes;
  Values pixels;
  for (Value row : product.aRows)
    pixels.push_back(code.at(product.a, element, code.add(row, aShift)));
  Value first = code.mul(piece, code.number(vectorsOfRun() * filters * lanes));
  Value panel = code.at(product.b, element, first);
  Values next = code.fold(code.number(0), code.number(whole), lanes, sums,
                          [&](Value k, ValueRange in) { return step(pixels, panel, k, {}, in); });
  if (whole == run)
    return next;
  return step(pixels, panel, code.number(whole), code.maskOf(code.number(run - whole)), next);
}

Values NarrowFilters::sumPieces(const TileProduct &product, size_t depth, Value aShift, Value piece,
                                ValueRange sums) {
  if (depth == product.pieces.size())
    return sumRun(product, aShift, piece, sums);
  Code &code = kernel.code();
  const ReductionPiece &pieces = product.pieces[depth];
  return code.fold(code.number(0), pieces.count, 1, sums, [&](Value i, ValueRange in) {
    return sumPieces(product, depth + 1, code.add(aShift, code.mul(i, pieces.aStep)),
                     code.add(code.mul(piece, pieces.count), i), in);
  });
}

/// A vector whose lane i is the sum of the lanes of rows[i]. Each round adds halves of two vectors
/// and leaves one for both; where there is no second one, its lanes are any.
static Value sumOfLanes(Code &code, Values rows) {
  int64_t lanes = code.lanes;
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < lanes; ++i) {
      low.push_back(i & distance ? lanes + i - distance : i);
      high.push_back(i & distance ? lanes + i : i + distance);
    }
    Values halves;
    for (int64_t i = 0; i < std::min<int64_t>(distance, rows.size()); ++i) {
      Value second = i + distance < (int64_t)rows.size() ? rows[i + distance] : rows[i];
      halves.push_back(code.b.create<arith::AddFOp>(
          code.loc, code.b.create<vector::ShuffleOp>(code.loc, rows[i], second, low),
          code.b.create<vector::ShuffleOp>(code.loc, rows[i], second, high)));
    }
    rows = halves;
  }
  return rows[0];
}

SmallVector<Value> NarrowFilters::sums(const RegisterTile &tile, const TileProduct &product,
                                       Value) {
  int64_t vectors = layout.vectors;
  Code &code = kernel.code();
  Value zero = code.spread(code.constantOf(element, 0)), none = code.number(0);
  Values start(tile.rows * filters, zero);
  Values sums = sumPieces(product, 0, none, none, start);
  SmallVector<Value> results;
  auto sumUp = [&](int64_t first, int64_t count) {
    return sumOfLanes(code, Values(sums.begin() + first, sums.begin() + first + count));
  };
  for (int64_t first = 0; vectors > 1 && first < tile.rows * filters; first += filters)
    for (int64_t filter = 0; filter < filters; filter += code.lanes)
      results.push_back(sumUp(first + filter, std::min(code.lanes, filters - filter)));
  if (vectors > 1)
    return results;
  int64_t together = code.lanes / filters; // pixels whose sums fill one vector
  for (int64_t first = 0; first < tile.rows; first += together) {
    int64_t count = std::min(together, tile.rows - first);
    Value all = sumUp(first * filters, count * filters);
    for (int64_t pixel = 0; pixel < count; ++pixel) {
      SmallVector<int64_t> turned;
      for (int64_t lane = 0; lane < code.lanes; ++lane)
        turned.push_back((pixel * filters + lane) % code.lanes);
      results.push_back(code.b.create<vector::ShuffleOp>(code.loc, all, all, turned));
    }
  }
  return results;
}

LogicalResult emitNarrowConv(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Contraction contraction(kernel, group, schedule);
  if (failed(contraction.prepare(outputsOf(group))))
    return failure();
  ProductLayout &layout = contraction.layout;
  auto length = layout.shape.length.constant();
  if (!length || *length == 0)
    return kernel.refuse("its filters are empty");
  layout.vectors = llvm::divideCeil(*layout.shape.columns.constant(), kernel.machine.lanes);
  layout.panels = Dim(1);
  if (kernel.isTrial)
    return success();
  contraction.emitOperands(std::make_unique<NarrowFilters>(layout));
  contraction.emitProducts();
  return success();
}

} // namespace heddle::lower
