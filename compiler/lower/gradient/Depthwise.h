// Depthwise: the gradient of filters of one channel each, channels in lanes.
//
// A line is read once from memory, all channels of it. For each row of the window a vector of
// channels has the sums of that row's places in registers; the columns that all of them have inside
// of the image take one loop, the others one for each place.
#ifndef HEDDLE_LOWER_GRADIENT_DEPTHWISE_H
#define HEDDLE_LOWER_GRADIENT_DEPTHWISE_H

#include "compiler/lower/gradient/Lines.h"

namespace heddle::lower {

class DepthwiseGradient {
public:
  DepthwiseGradient(KernelBuilder &kernel, const GradientShape &shape)
      : kernel(kernel), shape(shape), element(shape.element), lines(kernel, shape) {}

  void emit();

private:
  int64_t blocks() const { return llvm::divideCeil(shape.groups, kernel.machine.lanes); }
  void emitRow(const Line &line, Value outerPlace, Value sums);
  void sumRow(const Line &line, llvm::ArrayRef<Span> spans, Value block, Value sums);
  Values sumColumns(const Line &line, llvm::ArrayRef<Span> spans, Span columns, Value block,
                    mlir::ValueRange sums);
  void emitAddition();

  KernelBuilder &kernel;
  const GradientShape &shape;
  const Type element;
  Lines lines;
  int64_t partial = -1; // the sums of parts
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_GRADIENT_DEPTHWISE_H
