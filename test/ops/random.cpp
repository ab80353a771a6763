// random: random graphs, for the fusions that nobody thought of.
//
// Each step takes values made before and adds an op that keeps numbers small and continuous, so
// that a difference is a mistake and not rounding.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {

class RandomGraph {
public:
  RandomGraph(Model &m, unsigned seed, bool isDynamic) : m(m), random(seed) {
    const char *dims[] = {isDynamic ? "f32[n, 7, 16]" : "f32[3, 7, 16]",
                          isDynamic ? "f32[n, m]" : "f32[5, 33]",
                          isDynamic ? "f32[2, m, 5, n]" : "f32[2, 17, 5, 3]", "f32[7, 16]"};
    for (const char *text : dims)
      pool.push_back(m.input(text));
  }

  void grow(int steps) {
    for (int i = 0; i < steps; ++i)
      if (Value value = step())
        pool.push_back(value);
    // Outputs are all unused values, and some of the others.
    for (Value value : pool)
      if (value.getDefiningOp() && (value.use_empty() || below(6) == 0))
        m.output(value, {2e-5, 2e-5});
  }

private:
  int64_t below(int64_t count) { return random() % count; }
  Value any() {
    // Mostly what is new, so that graphs get deep.
    int64_t size = pool.size();
    return below(3) ? pool[size - 1 - below(std::min<int64_t>(size, 3))] : pool[below(size)];
  }
  static string number(int64_t value) { return std::to_string(value); }
  static string array(ArrayRef<int64_t> values) {
    return "array<i64: " +
           llvm::join(llvm::map_range(values, [](int64_t v) { return std::to_string(v); }), ", ") +
           ">";
  }
  string typeOf(ArrayRef<graph::Dim> dims) {
    return "f32[" +
           llvm::join(llvm::map_range(dims, [](const graph::Dim &d) { return d.str(); }), ", ") +
           "]";
  }
  Value with(const char *op, Value x, Value y) { return m.op(op, {x, m.broadcastTo(y, x)}); }

  Value step() {
    Value x = any();
    switch (below(14)) {
    case 0:
      return with("max", x, m.scalar("f32", 0));
    case 1: {
      const char *const curves[] = {"tanh", "sigmoid", "abs", "neg", "erf"};
      return m.op(curves[below(5)], {x});
    }
    case 2:
    case 3:
      return combine(x);
    case 4:
      return fold(x, true);
    case 5:
      return fold(x, false);
    case 6:
      return softmax(x);
    case 7:
      return transpose(x);
    case 8:
      return concat(x);
    case 9:
      return slice(x);
    case 10:
      return pad(x);
    case 11:
      return product(x);
    case 12:
      return merge(x);
    default:
      return gather(x);
    }
  }

  Value combine(Value x) {
    const char *const ops[] = {"add", "sub", "max", "min"};
    const char *op = ops[below(4)];
    for (int tries = 0; tries < 8; ++tries) {
      Value y = pool[below(pool.size())];
      graph::DimVector to = graph::dimsOf(x), from = graph::dimsOf(y);
      if (from.size() > to.size())
        continue;
      bool fits = true;
      for (size_t i = 0; i < from.size(); ++i)
        fits &= from[i] == to[to.size() - from.size() + i] || from[i].isConstant(1);
      if (fits)
        return m.op("tanh", {from == to ? m.op(op, {x, y}) : with(op, x, y)});
    }
    return {};
  }

  Value fold(Value x, bool spread) {
    int64_t rank = graph::rankOf(x);
    if (rank == 0)
      return {};
    const char *const ops[] = {"reduce_sum", "reduce_max", "reduce_min"};
    llvm::SmallVector<int64_t> axes{below(rank)};
    if (below(2) && axes[0] + 1 < rank)
      axes.push_back(axes[0] + 1);
    int64_t kind = below(3);
    if (kind && graph::elementCount(graph::dimsOf(x)).constant() == std::nullopt)
      kind = 0; // the extremes of nothing are infinite
    Value y =
        m.op(ops[kind], {x},
             "axes = " + array(axes) + ", keep_dims = " + (spread || below(2) ? "true" : "false"));
    y = m.op("tanh", {with("mul", y, m.scalar("f32", 0.25))});
    return spread ? with("sub", x, y) : y;
  }

  Value softmax(Value x) {
    int64_t rank = graph::rankOf(x);
    if (rank == 0)
      return {};
    string axes = "axes = " + array({below(rank)}) + ", keep_dims = true";
    Value e = m.op("exp", {m.op("tanh", {x})});
    return with("div", e, with("add", m.op("reduce_sum", {e}, axes), m.scalar("f32", 1)));
  }

  Value transpose(Value x) {
    llvm::SmallVector<int64_t> order(graph::rankOf(x));
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[below(i)]);
    return order.size() < 2 ? Value() : m.op("transpose", {x}, "permutation = " + array(order));
  }

  Value concat(Value x) {
    int64_t rank = graph::rankOf(x);
    if (rank == 0)
      return {};
    Value y = below(2) ? x : Value(m.op("neg", {x}));
    return m.op("concat", {x, y, x}, "axis = " + number(below(rank)));
  }

  Value slice(Value x) {
    graph::DimVector dims = graph::dimsOf(x);
    string starts;
    llvm::SmallVector<int64_t> steps;
    bool isCut = false;
    for (graph::Dim &dim : dims) {
      int64_t start = 0, step = 1;
      if (auto size = dim.constant(); size && *size > 3 && below(2)) {
        start = 1 + below(2);
        step = 1 + below(2);
        dim = graph::Dim((*size - start + step - 1) / step);
        isCut = true;
      }
      starts += (starts.empty() ? "" : ", ") + number(start);
      steps.push_back(step);
    }
    if (!isCut)
      return {};
    return m.op("slice", {x}, "starts = #graph.dims<" + starts + ">, steps = " + array(steps),
                typeOf(dims));
  }

  Value pad(Value x) {
    string low, high;
    int64_t rank = graph::rankOf(x);
    for (int64_t i = 0; i < rank; ++i) {
      low += (i ? ", " : "") + number(below(2));
      high += (i ? ", " : "") + number(below(3));
    }
    return m.op("pad", {x, m.scalar("f32", 0.5)},
                "low = #graph.dims<" + low + ">, high = #graph.dims<" + high + ">");
  }

  Value product(Value x) {
    graph::DimVector dims = graph::dimsOf(x);
    if (dims.size() < 2 || !dims.back().constant())
      return {};
    int64_t columns = 1 + below(20);
    string ones;
    for (size_t i = 0; i + 2 < dims.size(); ++i)
      ones += "1, ";
    string shape = "f32[" + ones + dims.back().str() + ", " + number(columns) + "]";
    Value w = below(2) ? m.constant(shape, Fill::range(-0.3, 0.3))
                       : m.input(shape, Fill::range(-0.3, 0.3));
    dims.back() = graph::Dim(columns);
    return m.op("matmul", {m.op("tanh", {x}), w}, "", typeOf(dims));
  }

  Value merge(Value x) {
    graph::DimVector dims = graph::dimsOf(x);
    if (dims.size() < 2)
      return m.op("reshape", {x}, "", typeOf(graph::DimVector{graph::elementCount(dims), 1}));
    int64_t at = below(dims.size() - 1);
    dims[at] = dims[at] * dims[at + 1];
    dims.erase(dims.begin() + at + 1);
    return m.op("reshape", {x}, "", typeOf(dims));
  }

  Value gather(Value x) {
    int64_t rank = graph::rankOf(x);
    if (rank == 0)
      return {};
    int64_t axis = below(rank);
    auto size = graph::dimsOf(x)[axis].constant();
    if (!size || *size == 0)
      return {};
    Value indices = m.input("i64[" + number(1 + below(9)) + "]", Fill::index(number(*size)));
    return m.op("gather", {x, indices}, "axis = " + number(axis));
  }

  Model &m;
  std::mt19937 random;
  Values pool;
};

} // namespace

void addRandom(Cases &cases) {
  for (unsigned seed = 0; seed < 80; ++seed) {
    bool isDynamic = seed % 2;
    std::vector<Sizes> runs;
    if (isDynamic)
      runs = {{{"n", 3}, {"m", 17}}, {{"n", 1}, {"m", 4}}, {{"n", 16}, {"m", 1}}};
    Case one{"random/graph " + std::to_string(seed),
             [=](Model &m) { RandomGraph(m, seed, isDynamic).grow(8 + seed / 8); },
             std::move(runs)};
    cases.push_back(one);
    if (seed % 4 < 2) {
      one.name += " in place";
      one.inPlace = true;
      cases.push_back(std::move(one));
    }
  }
}

} // namespace heddle::ops
