// ProductShape: strides of the rows in A, and the pieces in which a window walks an image.

#include "compiler/lower/contraction/ProductShape.h"

#include "compiler/mechanism/Extents.h"

using namespace mlir;

namespace heddle::lower {

/// Elements from one index to the next along each dimension of the left operand, in the memory of
/// what it transposes, if it does.
static SmallVector<Dim> leftStrides(graph::MatmulOp op, graph::TransposeOp transpose) {
  DimVector dims = graph::dimsOf(transpose ? transpose.getX() : op.getA());
  SmallVector<Dim> strides(dims.size(), Dim(1)), permuted;
  for (size_t i = dims.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * dims[i + 1];
  for (size_t i = 0; i < dims.size(); ++i)
    permuted.push_back(strides[transpose ? transpose.getPermutation()[i] : i]);
  return permuted;
}

static void readMatmul(graph::MatmulOp op, graph::TransposeOp transpose, ProductShape &shape) {
  shape.a = op.getA();
  shape.b = op.getB();
  DimVector a = graph::dimsOf(op.getA()), b = graph::dimsOf(op.getB()),
            c = graph::dimsOf(op.getResult());
  size_t rank = c.size();
  shape.length = a[rank - 1];
  SmallVector<Dim> strides = leftStrides(op, transpose);
  shape.aStep = strides.back();
  for (size_t i = 0; i + 1 < rank; ++i) {
    bool isBatch = i + 2 < rank;
    bool aHas = !isBatch || !a[i].isConstant(1) || c[i].isConstant(1);
    bool bHas = isBatch && !(b[i].isConstant(1) && !c[i].isConstant(1));
    if (isBatch && b[i].isConstant(1))
      bHas = false;
    bool joins = i > 0 && aHas && !bHas && strides[i - 1] == strides[i] * a[i];
    shape.rows.push_back({c[i], aHas ? strides[i] : Dim(0), joins});
    if (isBatch)
      shape.bBatch.push_back(b[i]);
    if (bHas)
      shape.batches.push_back(i);
  }
  // A run must not begin inside of a batch of B.
  for (int64_t batch : shape.batches)
    if (batch + 1 < (int64_t)shape.rows.size())
      shape.rows[batch + 1].joins = false;
  for (size_t i = 1; i < shape.rows.size(); ++i)
    if (shape.rows[i - 1].aStride.isConstant(0))
      shape.rows[i].joins = false;
}

static void readConv(graph::ConvOp op, ProductShape &shape) {
  DimVector x = graph::dimsOf(op.getX()), w = graph::dimsOf(op.getW()),
            y = graph::dimsOf(op.getResult());
  size_t spatial = x.size() - 2;
  shape.a = op.getX();
  shape.b = op.getW();
  shape.groups = Dim(op.getGroups());
  Dim channels = x.back();
  shape.aGroupStride = w[1];
  shape.low.assign(op.getLow().begin(), op.getLow().end());
  shape.high.assign(op.getHigh().begin(), op.getHigh().end());
  SmallVector<Dim> stride(spatial);
  Dim step = channels;
  for (size_t d = spatial; d-- > 0;) {
    stride[d] = step;
    step = step * (x[d + 1] + Dim(shape.low[d] + shape.high[d]));
    shape.needsBorder |= shape.low[d] != 0 || shape.high[d] != 0;
  }
  bool isPointwise = true;
  for (size_t d = 0; d < spatial; ++d)
    isPointwise &= w[d + 2].isConstant(1) && op.getStrides()[d] == 1;
  isPointwise &= !shape.needsBorder;
  shape.rows.push_back({y[0], step});
  for (size_t d = 0; d < spatial; ++d)
    shape.rows.push_back({y[d + 1], stride[d] * Dim(op.getStrides()[d]), isPointwise});
  shape.length = w[1];
  for (size_t d = 0; d < spatial; ++d) {
    bool isContiguous = d + 1 == spatial && op.getDilations()[d] == 1 && op.getGroups() == 1;
    if (isContiguous)
      shape.length = shape.length * w[d + 2];
    else if (!w[d + 2].isConstant(1))
      shape.pieces.push_back({w[d + 2], stride[d] * Dim(op.getDilations()[d]), (int64_t)d});
  }
}

ProductShape readShape(const mechanism::Product &product) {
  ProductShape shape;
  shape.root = product.root;
  mechanism::Extents extents = mechanism::extentsOfProduct(product.root);
  shape.columns = extents.columns;
  shape.reduction = extents.depth;
  shape.taps = extents.taps;
  if (auto matmul = dyn_cast<graph::MatmulOp>(product.root))
    readMatmul(matmul, product.transposed, shape);
  else
    readConv(cast<graph::ConvOp>(product.root), shape);
  if (product.triangle) {
    shape.a = product.triangle->kept;
    shape.band = product.triangle->band;
  } else if (product.limits) {
    shape.a = product.limits->kept;
    shape.limits = product.limits;
  } else if (product.transposed) {
    graph::TransposeOp transpose = product.transposed;
    shape.a = transpose.getX();
  }
  shape.a = mechanism::storedLeft(shape.a);
  if (shape.isCut())
    shape.rows.back().joins = false; // a row's number is that in its matrix
  return shape;
}

} // namespace heddle::lower
