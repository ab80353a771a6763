// rows: ragged batches. The oracle knows nothing of them: it runs the model for each row alone, on
// inputs cut to the row's length, and puts the results between zeros.

#include "test/ops/case.h"

#include "compiler/reference/Interpreter.h"

using namespace mlir;

namespace heddle::ops {

using graph::Dim;
using reference::Tensor;
using reference::Tensors;

namespace {
/// A padded batch, and the part of it that is a row.
struct RowPart {
  Dim of, rowSize;
  int64_t row, length;

  /// The size of the row alone along a dimension of `size`, and where it begins.
  std::pair<int64_t, int64_t> along(const Dim &dim, int64_t size) const {
    if (dim == of)
      return {1, row};
    return {dim == rowSize ? length : size, 0};
  }

  /// Calls function(number in the row alone, number in the batch) for each element.
  void forEach(Type type, ArrayRef<int64_t> whole,
               llvm::function_ref<void(int64_t, int64_t)> function) const {
    SmallVector<int64_t> strides = reference::stridesOf(whole);
    int64_t offset = 0;
    for (auto [axis, dim] : llvm::enumerate(graph::dimsOf(type)))
      offset += along(dim, whole[axis]).second * strides[axis];
    reference::forEachIndex(shapeOf(type, whole), [&](ArrayRef<int64_t> index, int64_t number) {
      int64_t place = offset;
      for (auto [i, stride] : llvm::zip(index, strides))
        place += i * stride;
      function(number, place);
    });
  }

  SmallVector<int64_t> shapeOf(Type type, ArrayRef<int64_t> whole) const {
    SmallVector<int64_t> shape;
    for (auto [dim, size] : llvm::zip(graph::dimsOf(type), whole))
      shape.push_back(along(dim, size).first);
    return shape;
  }
};
} // namespace

static llvm::Expected<Tensors> runWhole(ModuleOp module, uint64_t seed, const Tensors &inputs) {
  reference::Interpreter interpreter(module);
  interpreter.memory().seed = seed;
  return interpreter.run(inputs);
}

static Tensor cut(const Tensor &whole, Type type, const RowPart &part) {
  Tensor result = Tensor::zeros(whole.element, part.shapeOf(type, whole.shape));
  int64_t width = whole.width();
  part.forEach(type, whole.shape, [&](int64_t to, int64_t from) {
    llvm::copy(whole.bytes().slice(from * width, width), result.data() + to * width);
  });
  return result;
}

llvm::Expected<Tensors> runOracle(ModuleOp module, uint64_t seed, const Tensors &inputs) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  auto found = main.getOps<graph::RowLengthsOp>();
  if (found.empty())
    return runWhole(module, seed, inputs);
  graph::RowLengthsOp rows = *found.begin();
  const Tensor &lengths = inputs[cast<BlockArgument>(rows.getX()).getArgNumber()];
  std::map<std::string, int64_t> sizes;
  for (auto [type, input] : llvm::zip(main.getArgumentTypes(), inputs))
    for (auto [dim, size] : llvm::zip(graph::dimsOf(type), ArrayRef<int64_t>(input.shape)))
      if (auto name = dim.symbolName())
        sizes[*name] = size;
  Tensors results;
  for (Type type : main.getResultTypes()) {
    SmallVector<int64_t> shape;
    for (const Dim &dim : graph::dimsOf(type))
      shape.push_back(*dim.evaluate(
          [&](StringRef name) -> std::optional<int64_t> { return sizes.at(name.str()); }));
    results.push_back(Tensor::zeros(getElementTypeOrSelf(type), shape));
  }
  for (int64_t row = 0; row < lengths.shape[0]; ++row) {
    RowPart part{Dim::symbol(rows.getOf()), Dim::symbol(rows.getSize()), row,
                 reference::integerAt(lengths, row)};
    Tensors ofRow;
    for (auto [type, input] : llvm::zip(main.getArgumentTypes(), inputs))
      ofRow.push_back(cut(input, type, part));
    auto made = runWhole(module, seed, ofRow);
    if (!made)
      return made.takeError();
    for (auto [type, from, to] : llvm::zip(main.getResultTypes(), *made, results)) {
      int64_t width = to.width();
      part.forEach(type, to.shape, [&, &from = from, &to = to](int64_t number, int64_t place) {
        llvm::copy(from.bytes().slice(number * width, width), to.data() + place * width);
      });
    }
  }
  return results;
}

namespace {
/// Builders of the models of this file.
struct Rows {
  Model &m;

  Value constantOf(double number, Value like) const {
    return m.broadcastTo(m.scalar("f32", number), like);
  }
  Value linear(Value x, const std::string &from, const std::string &to) const {
    Value w = m.constant("f32[1, " + from + ", " + to + "]");
    Value y = m.op("matmul", {x, w}, "", "f32[batch, seq, " + to + "]");
    return m.op("add", {y, m.broadcastTo(m.constant("f32[" + to + "]"), y)});
  }
  Value reduce(const char *op, Value x, int axis) const {
    return m.op(op, {x}, "axes = array<i64: " + std::to_string(axis) + ">, keep_dims = true");
  }
  Value softmax(Value x) const {
    Value top = m.broadcastTo(reduce("reduce_max", x, 3), x);
    Value powers = m.op("exp", {m.op("sub", {x, top})});
    return m.op("div", {powers, m.broadcastTo(reduce("reduce_sum", powers, 3), powers)});
  }
  Value heads(Value x, const char *order) const {
    Value split = m.op("reshape", {x}, "", "f32[batch, seq, 2, 12]");
    return m.op("transpose", {split}, std::string("permutation = array<i64: ") + order + ">");
  }
};
} // namespace

static void attend(Model &m, Value x) {
  Rows rows{m};
  Value q = rows.heads(rows.linear(x, "24", "24"), "0, 2, 1, 3");
  Value k = rows.heads(rows.linear(x, "24", "24"), "0, 2, 3, 1");
  Value v = rows.heads(rows.linear(x, "24", "24"), "0, 2, 1, 3");
  Value scores = m.op("matmul", {q, k}, "", "f32[batch, 2, seq, seq]");
  scores = m.op("mul", {scores, rows.constantOf(0.05, scores)});
  Value mixed = m.op("matmul", {rows.softmax(scores), v}, "", "f32[batch, 2, seq, 12]");
  Value back = m.op("transpose", {mixed}, "permutation = array<i64: 0, 2, 1, 3>");
  Value joined = m.op("reshape", {back}, "", "f32[batch, seq, 24]");
  m.output(m.op("add", {rows.linear(joined, "24", "24"), x}), {1e-4, 1e-4});
}

static void normalize(Model &m, Value x) {
  Rows rows{m};
  auto meanOf = [&](Value of) {
    Value sum = rows.reduce("reduce_sum", of, 2);
    return m.op("div", {sum, rows.constantOf(24, sum)});
  };
  Value mean = meanOf(x);
  Value centred = m.op("sub", {x, m.broadcastTo(mean, x)});
  Value variance = meanOf(m.op("mul", {centred, centred}));
  variance = m.op("add", {variance, rows.constantOf(1e-5, variance)});
  Value scaled = m.op("div", {centred, m.broadcastTo(m.op("sqrt", {variance}), x)});
  m.output(rows.linear(scaled, "24", "40"), {1e-4, 1e-4});
}

static void addModel(Cases &cases, const std::string &name,
                     const std::function<void(Model &, Value)> &build,
                     const std::string &type = "f32[batch, seq, 24]", Fill fill = Fill()) {
  auto whole = [=](Model &m) {
    Value x = m.input(type, fill);
    Value lengths = m.input("i32[batch]", Fill::length("seq"));
    m.op("row_lengths", {lengths}, "of = \"batch\", size = \"seq\"", "i64[batch]");
    build(m, x);
  };
  std::vector<Sizes> runs;
  for (auto [batch, seq] : {std::pair{5, 9}, {1, 1}, {7, 17}, {3, 65}, {12, 33}, {0, 4}, {4, 0}})
    runs.push_back({{"batch", batch}, {"seq", seq}});
  cases.push_back({"rows/" + name, whole, runs});
  Case inBlocks{"rows/" + name + " in blocks", whole, runs};
  inBlocks.thresholds = {{"row_block", 1}};
  cases.push_back(inBlocks);
}

void addRows(Cases &cases) {
  for (const char *element : {"f32", "f64", "f16", "bf16", "i8", "i64"}) {
    std::string type = element;
    addModel(
        cases, "elements " + type,
        [](Model &m, Value x) {
          Value y = m.op("mul", {x, x});
          m.output(m.op("add", {y, x}));
        },
        type + "[batch, seq, 5]", Fill::any());
  }
  addModel(cases, "softmax along rows", [](Model &m, Value x) {
    Rows rows{m};
    Value powers =
        m.op("exp", {m.op("sub", {x, m.broadcastTo(rows.reduce("reduce_max", x, 1), x)})});
    m.output(m.op("div", {powers, m.broadcastTo(rows.reduce("reduce_sum", powers, 1), powers)}));
  });
  for (const char *op : {"reduce_sum", "reduce_max"})
    for (int axis : {1, 2})
      addModel(cases, std::string(op) + " " + std::to_string(axis),
               [=](Model &m, Value x) { m.output(Rows{m}.reduce(op, x, axis)); });
  addModel(cases, "attention", attend);
  addModel(cases, "normalized", normalize);
  addModel(cases, "gram", [](Model &m, Value x) {
    Value turned = m.op("transpose", {x}, "permutation = array<i64: 0, 2, 1>");
    m.output(m.op("matmul", {turned, x}, "", "f32[batch, 24, 24]"), {1e-4, 1e-4});
    m.output(m.op("matmul", {x, turned}, "", "f32[batch, seq, seq]"), {1e-4, 1e-4});
  });
  addModel(
      cases, "integers",
      [](Model &m, Value x) {
        Value w = m.constant("i8[1, 24, 16]");
        m.output(m.op("matmul", {x, w}, "", "i32[batch, seq, 16]"));
      },
      "ui8[batch, seq, 24]", Fill::any());
  addModel(cases, "joined and cut", [](Model &m, Value x) {
    Value both = m.op("concat", {x, m.op("neg", {x})}, "axis = 2");
    Value some =
        m.op("slice", {both}, "starts = #graph.dims<0, 0, 20>, steps = array<i64: 1, 1, 3>",
             "f32[batch, seq, 9]");
    m.output(some);
  });
  addModel(cases, "window along rows", [](Model &m, Value x) {
    Value turned = m.op("transpose", {x}, "permutation = array<i64: 0, 2, 1>");
    m.output(m.op("conv", {turned, m.constant("f32[10, 24, 3]")},
                  "strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 1>, "
                  "high = array<i64: 1>",
                  "f32[batch, 10, seq]"),
             {1e-4, 1e-4});
  });
}

} // namespace heddle::ops
