// masks: attention whose masks hide whole panels of keys: causal ones, with and without a
// cache, those of padding on either side, rows that see nothing, and numbers that are not finite.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {
/// Scores of 2 heads of 24: rows and columns as sizes, and the parts of masks.
struct Scores {
  Model &m;
  string rows, columns;

  string type(const string &element) const {
    return element + "[b, 2, " + rows + ", " + columns + "]";
  }
  Value number(int64_t axis) const {
    string dims = "i64[" + rows + ", " + columns + "]";
    return m.op("iota", {}, "axis = " + std::to_string(axis), dims);
  }
  Value spread(Value x, Value like) const { return m.broadcastTo(x, like); }
  Value whole(int64_t value, Value like) const {
    return spread(m.scalar("i64", static_cast<double>(value)), like);
  }
  /// Keys up to `ahead` after the query's own number.
  Value upTo(int64_t ahead) const {
    Value row = number(0);
    return m.op("greater_equal", {m.op("add", {row, whole(ahead, row)}), number(1)});
  }
  Value keep(Value condition, Value x, double hidden) const {
    return m.op("select", {spread(condition, x), x, spread(m.scalar("f32", hidden), x)});
  }
  /// 0 where the condition holds.
  Value additive(Value condition, double hidden) const {
    string type = "f32[" + rows + ", " + columns + "]";
    Value zero = m.op("cast", {number(0)}, "", type);
    zero = m.op("mul", {zero, spread(m.scalar("f32", 0), zero)});
    return keep(condition, zero, hidden);
  }
};
using Middle = std::function<Value(const Scores &, Value)>;
} // namespace

static const double kInfinity = std::numeric_limits<double>::infinity();
static const double kLowest = std::numeric_limits<float>::lowest();

static const std::vector<Sizes> kRuns = {
    {{"b", 1}, {"s", 150}, {"t", 150}}, {{"b", 1}, {"s", 37}, {"t", 261}},
    {{"b", 1}, {"s", 131}, {"t", 64}},  {{"b", 2}, {"s", 7}, {"t", 130}},
    {{"b", 1}, {"s", 8}, {"t", 1}},     {{"b", 1}, {"s", 1}, {"t", 200}},
    {{"b", 1}, {"s", 9}, {"t", 0}}};

static Value fold(Model &m, const char *op, Value x) {
  return m.op(op, {x}, "axes = array<i64: 3>, keep_dims = true");
}

static Value softmax(Model &m, Value x) {
  Value powers = m.op("exp", {m.op("sub", {x, m.broadcastTo(fold(m, "reduce_max", x), x)})});
  return m.op("div", {powers, m.broadcastTo(fold(m, "reduce_sum", powers), powers)});
}

static Value scaled(const Scores &scores, Value x) {
  return scores.m.op("mul", {x, scores.spread(scores.m.scalar("f32", 0.2), x)});
}

struct Numbers {
  Fill queries, keys, values;
  double tolerance = 0; // 0: as of numbers near 1
};

static void add(Cases &cases, const string &name, const Middle &middle, Numbers fills = {},
                std::pair<string, string> sizes = {"s", "t"}, bool areNansZeros = false) {
  auto build = [=](Model &m) {
    Scores scores{m, sizes.first, sizes.second};
    Value q = m.input("f32[b, 2, " + sizes.first + ", 24]", fills.queries);
    Value k = m.input("f32[b, 2, 24, " + sizes.second + "]", fills.keys);
    Value v = m.input("f32[b, 2, " + sizes.second + ", 24]", fills.values);
    Value weights = softmax(m, middle(scores, m.op("matmul", {q, k}, "", scores.type("f32"))));
    if (areNansZeros) {
      Value zero = m.broadcastTo(m.scalar("f32", 0), weights);
      weights = m.op("select", {m.op("is_nan", {weights}), zero, weights});
    }
    Tolerance close = Tolerance::close(m.element("f32"), 20);
    if (fills.tolerance > 0)
      close = {fills.tolerance, fills.tolerance};
    m.output(m.op("matmul", {weights, v}, "", "f32[b, 2, " + sizes.first + ", 24]"), close);
  };
  bool isKnown = sizes.first != "s";
  std::vector<Sizes> one = {{{"b", 2}}};
  cases.push_back({"attention/masks, " + name, build, isKnown ? one : kRuns, {{"attention", 1}}});
}

/// Keys before a place that each query of each batch has.
static void addEdges(Cases &cases) {
  auto before = [](const string &type, const string &op, double least, double hidden) -> Middle {
    return [=](const Scores &scores, Value x) {
      string dims = "[b, 1, " + scores.rows + ", " + scores.columns + "]";
      Value edge = scores.m.input(type + "[b, 1, " + scores.rows + ", 1]", Fill::range(least, 150));
      edge = scores.m.op("broadcast", {edge}, "", type + dims);
      Value key = scores.m.op("iota", {}, "axis = 0", type + "[" + scores.columns + "]");
      key = scores.m.op("broadcast", {key}, "", type + dims);
      bool isFirst = op.starts_with("less");
      Value isSeen = scores.m.op(op, {isFirst ? key : edge, isFirst ? edge : key});
      return scores.keep(isSeen, scaled(scores, x), hidden);
    };
  };
  add(cases, "keys up to a place", before("i64", "less_equal", 0, -kInfinity));
  add(cases, "keys before a place", before("i32", "greater", 1, kLowest));
  add(cases, "keys up to a place, of some rows none",
      before("i64", "greater_equal", -30, -kInfinity));
  add(cases, "keys before a place, of some rows none", before("i32", "less", -30, -1e4));
  add(cases, "keys up to a place, -5 elsewhere", before("i64", "less_equal", -30, -5));
  add(cases, "keys up to a place, numbers of all kinds", before("i64", "less_equal", -3, -1e4),
      {Fill::any(), Fill::any(), Fill::any()});
}

void addMasks(Cases &cases) {
  auto select = [](int64_t ahead, double hidden) -> Middle {
    return [=](const Scores &scores, Value x) {
      return scores.keep(scores.upTo(ahead), scaled(scores, x), hidden);
    };
  };
  auto added = [](int64_t ahead, double hidden) -> Middle {
    return [=](const Scores &scores, Value x) {
      Value mask = scores.additive(scores.upTo(ahead), hidden);
      return scores.m.op("add", {scaled(scores, x), scores.spread(mask, x)});
    };
  };
  auto given = [](const string &type) -> Middle {
    return [=](const Scores &scores, Value x) { // hides most keys of most rows
      Value mask = scores.m.op("ceil", {scores.m.input("f32" + type, Fill::range(-0.1, 1))});
      mask = scores.m.op("mul", {mask, scores.spread(scores.m.scalar("f32", -1e4), mask)});
      return scores.m.op("add", {scaled(scores, x), scores.spread(mask, x)});
    };
  };
  add(cases, "causal", select(0, -kInfinity));
  add(cases, "causal, the lowest number", select(0, kLowest));
  add(cases, "causal, known sizes", select(0, -kInfinity), {}, {"141", "141"});
  add(cases, "causal, added", added(0, -kInfinity));
  add(cases, "causal, -1e4 added", added(0, -1e4));
  add(cases, "causal, the lowest number added", added(0, kLowest), {}, {"67", "197"});
  add(cases, "causal after a cache", select(70, -kInfinity));
  add(cases, "causal, first rows without keys", select(-40, -kInfinity));
  add(cases, "causal, first rows without keys as zeros", select(-40, -kInfinity), {}, {"s", "t"},
      true);
  add(cases, "causal, first rows without keys added", added(-40, kLowest));
  add(cases, "causal, first rows without keys, -1e4 added", added(-40, -1e4));
  add(cases, "keys from the query on", [](const Scores &scores, Value x) {
    Value isSeen = scores.m.op("greater_equal", {scores.number(1), scores.number(0)});
    return scores.keep(isSeen, scaled(scores, x), -1e4);
  });
  add(cases, "a few keys before the query", [](const Scores &scores, Value x) {
    x = scores.keep(scores.upTo(0), scaled(scores, x), -kInfinity);
    Value row = scores.number(0), from = scores.m.op("sub", {row, scores.whole(20, row)});
    return scores.keep(scores.m.op("greater_equal", {scores.number(1), from}), x, -kInfinity);
  });
  add(cases, "padding after", [](const Scores &scores, Value x) {
    Value column = scores.number(1);
    Value isSeen = scores.m.op("less", {column, scores.whole(66, column)});
    return scores.keep(isSeen, scaled(scores, x), -kInfinity);
  });
  add(cases, "padding before, added", [](const Scores &scores, Value x) {
    Value column = scores.number(1);
    Value mask = scores.additive(scores.m.op("less", {scores.whole(100, column), column}), kLowest);
    return scores.m.op("add", {scores.spread(mask, x), scaled(scores, x)});
  });
  add(cases, "of keys, at random", given("[b, 1, 1, t]"));
  add(cases, "of scores, at random", given("[b, 1, s, t]"));
  // Added numbers decide if they are large enough, or make NaN.
  add(cases, "causal, -5 added", added(0, -5));
  add(cases, "causal, -1e4 added to as large scores", added(0, -1e4),
      {Fill::range(-900, 900), Fill(), Fill(), 1e-2});
  add(cases, "causal, numbers of all kinds", added(0, -kInfinity),
      {Fill::any(), Fill::any(), Fill::any()});
  add(cases, "causal, values of all kinds", select(0, -kInfinity), {Fill(), Fill(), Fill::any()});
  add(cases, "causal, keys of all kinds", added(0, -1e4), {Fill(), Fill::any(), Fill()});
  addEdges(cases);
}

} // namespace heddle::ops
