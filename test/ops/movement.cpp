// movement: ops that make tensors or move elements.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

static const std::vector<Sizes> kRuns = {
    {{"n", 3}, {"m", 17}}, {{"n", 16}, {"m", 1}}, {{"n", 0}, {"m", 5}}};

static void exact(Model &m, Value value) { m.output(value, Tolerance::exact()); }

namespace {
/// Adds cases "movement/NAME TYPE".
struct Adder {
  Cases &cases;
  string type;
  void operator()(const string &name, std::vector<Sizes> runs,
                  std::function<void(Model &)> build) const {
    cases.push_back({"movement/" + name + " " + type, std::move(build), std::move(runs)});
  }
};
} // namespace

static void addMoves(const Adder &add, const string &type) {
  add("transpose", {}, [=](Model &m) {
    Value x = m.input(type + "[7, 33]"), y = m.input(type + "[2, 15, 3, 16]");
    exact(m, m.op("transpose", {x}, "permutation = array<i64: 1, 0>"));
    exact(m, m.op("transpose", {y}, "permutation = array<i64: 0, 2, 1, 3>"));
    exact(m, m.op("transpose", {y}, "permutation = array<i64: 3, 1, 0, 2>"));
    exact(m, m.op("transpose", {y}, "permutation = array<i64: 0, 2, 3, 1>"));
  });
  add("transpose constants", {}, [=](Model &m) {
    for (const char *order : {"0, 2, 1", "2, 0, 1", "1, 2, 0", "2, 1, 0", "1, 0, 2"})
      exact(m, m.op("transpose", {m.constant(type + "[3, 20, 17]")},
                    string("permutation = array<i64: ") + order + ">"));
  });
  add("transpose dynamic", kRuns, [=](Model &m) {
    Value x = m.input(type + "[n, m]"), y = m.input(type + "[n, 7, m, 3]");
    exact(m, m.op("transpose", {x}, "permutation = array<i64: 1, 0>"));
    exact(m, m.op("transpose", {y}, "permutation = array<i64: 0, 3, 1, 2>"));
  });
  // Places of a row lie apart, and parts of them side by side; rows of several tasks.
  add("transpose parts", {{{"n", 0}, {"m", 8}}, {{"n", 37}, {"m", 19}}, {{"n", 700}, {"m", 3}}},
      [=](Model &m) {
        for (const char *channels : {"5", "8", "17", "m"})
          for (const char *parts : {"2", "3"}) {
            Value x = m.input(type + "[2, n, 2, " + parts + ", " + channels + "]");
            exact(m, m.op("transpose", {x}, "permutation = array<i64: 4, 0, 2, 1, 3>"));
          }
        exact(m, m.op("transpose", {m.input(type + "[n, 8]")}, "permutation = array<i64: 1, 0>"));
        exact(m, m.op("max", {m.op("broadcast", {m.input(type + "[n, 1]")}, "", type + "[n, m]"),
                              m.op("broadcast", {m.input(type + "[m]")}, "", type + "[n, m]")}));
      });
  add("transpose squares", {{{"n", 40}, {"m", 33}}, {{"n", 1}, {"m", 100}}, {{"n", 0}, {"m", 9}}},
      [=](Model &m) {
        Value x = m.input(type + "[n, m]"), wide = m.input(type + "[2, m, 5, 24]");
        exact(m, m.op("transpose", {x}, "permutation = array<i64: 1, 0>"));
        exact(m, m.op("transpose", {wide}, "permutation = array<i64: 0, 3, 1, 2>"));
        for (const char *channels : {"2", "3", "5", "7"})
          exact(m, m.op("transpose", {m.input(type + "[2, " + channels + ", 3, m]")},
                        "permutation = array<i64: 0, 2, 3, 1>"));
      });
  add("reshape", kRuns, [=](Model &m) {
    Value x = m.input(type + "[n, m, 6]");
    // The result of an op, so that the reshape is not one of an argument alone.
    Value y = m.op("transpose", {x}, "permutation = array<i64: 1, 0, 2>");
    exact(m, m.op("reshape", {x}, "", type + "[6*m*n]"));
    exact(m, m.op("reshape", {x}, "", type + "[n, 1, m, 2, 3]"));
    exact(m, m.op("transpose", {m.op("reshape", {y}, "", type + "[m*n, 2, 3]")},
                  "permutation = array<i64: 1, 0, 2>"));
    exact(m, m.op("concat",
                  {m.op("reshape", {y}, "", type + "[3, 2*m*n]"),
                   m.op("reshape", {x}, "", type + "[3, 2*m*n]")},
                  "axis = 0"));
  });
  add("broadcast", kRuns, [=](Model &m) {
    Value row = m.input(type + "[m]"), column = m.input(type + "[n, 1]"),
          one = m.input(type + "[]");
    for (Value x : {row, column, one})
      exact(m, m.op("broadcast", {x}, "", type + "[2, n, m]"));
  });
  add("slice", kRuns, [=](Model &m) {
    Value x = m.input(type + "[n, 20]"), y = m.input(type + "[33]");
    exact(m, m.op("slice", {x}, "starts = #graph.dims<0, 3>, steps = array<i64: 1, 1>",
                  type + "[n, 16]"));
    exact(m, m.op("slice", {x}, "starts = #graph.dims<0, 19>, steps = array<i64: 1, -3>",
                  type + "[n, 7]"));
    exact(m, m.op("slice", {x}, "starts = #graph.dims<\"n\", 1>, steps = array<i64: 1, 2>",
                  type + "[0, 9]"));
    exact(m, m.op("slice", {x}, "starts = #graph.dims<\"n - 1\", 0>, steps = array<i64: -1, 1>",
                  type + "[n, 20]"));
    exact(m, m.op("slice", {y}, "starts = #graph.dims<32>, steps = array<i64: -1>", type + "[33]"));
    // To the last element of an input, in whole vectors and what is left.
    for (int64_t step : {-5, -4, -3, -2, 2, 3, 4, 5}) {
      Value wide = m.input(type + "[n, " + std::to_string(std::abs(step) * 36 + 1) + "]");
      exact(m, m.op("slice", {wide},
                    "starts = #graph.dims<0, " + std::to_string(step < 0 ? -step * 36 : 0) +
                        ">, steps = array<i64: 1, " + std::to_string(step) + ">",
                    type + "[n, 37]"));
    }
  });
  add("concat", kRuns, [=](Model &m) {
    Value x = m.input(type + "[n, 7]"), y = m.input(type + "[n, 16]"), z = m.input(type + "[n, 0]"),
          w = m.input(type + "[m, 7]");
    exact(m, m.op("concat", {x, y, z, x}, "axis = 1"));
    exact(m, m.op("concat", {x, w, x}, "axis = 0"));
    exact(m, m.op("concat", {y}, "axis = 1"));
  });
}

static void addPads(const Adder &add, const string &type) {
  add("pad", {{{"n", 3}, {"m", 17}}, {{"n", 16}, {"m", 4}}}, [=](Model &m) {
    Value x = m.input(type + "[n, m]"), value = m.input(type + "[]");
    for (const char *mode : {"constant", "edge", "reflect", "wrap"})
      exact(m, m.op("pad", {x, value},
                    string("low = #graph.dims<1, 2>, high = #graph.dims<2, 3>, mode = \"") + mode +
                        "\""));
    exact(m, m.op("pad", {x, value}, "low = #graph.dims<-1, 2>, high = #graph.dims<0, -3>"));
    exact(m, m.op("pad", {x, value}, "low = #graph.dims<0, \"n\">, high = #graph.dims<0, 0>"));
  });
  add("pad wide", {{{"n", 2}, {"m", 90}}, {{"n", 1}, {"m", 41}}}, [=](Model &m) {
    Value x = m.input(type + "[n, m]"), value = m.input(type + "[]");
    for (const char *mode : {"constant", "edge", "reflect", "wrap"}) // vectors on either side
      exact(m, m.op("pad", {x, value},
                    string("low = #graph.dims<0, 40>, high = #graph.dims<0, 39>, mode = \"") +
                        mode + "\""));
  });
  // Values of a row are read once for all lanes, of rows inside alone.
  add("pad of rows", {{{"n", 3}, {"m", 17}}, {{"n", 16}, {"m", 40}}}, [=](Model &m) {
    Value x = m.input(type + "[n, m]"), row = m.input(type + "[n, 1]");
    Value value = m.input(type + "[]"), y = m.op("min", {x, m.broadcastTo(row, x)});
    exact(m, m.op("pad", {y, value}, "low = #graph.dims<1, 2>, high = #graph.dims<2, 1>"));
  });
  add("pad nothing", {{{"n", 0}}}, [=](Model &m) {
    Value x = m.input(type + "[n, 5]"), value = m.input(type + "[]");
    exact(m, m.op("pad", {x, value}, "low = #graph.dims<1, 2>, high = #graph.dims<2, 12>"));
  });
}

static void addDynamicMoves(const Adder &add, const string &type) {
  add("dynamic slice", kRuns, [=](Model &m) {
    Value x = m.input(type + "[n, 20]");
    Value starts = m.input("i64[2]", Fill::range(-25, 25)),
          ends = m.input("i64[2]", Fill::range(-25, 25));
    Value up = m.input("i64[2]", Fill::range(1, 3)), down = m.input("i64[2]", Fill::range(-3, -1));
    exact(m, m.op("dynamic_slice", {x, starts, ends, up}, "axes = array<i64: 1, 0>",
                  type + "[$a, $b]"));
    exact(m, m.op("dynamic_slice", {x, ends, starts, down}, "axes = array<i64: 0, 1>",
                  type + "[$c, $d]"));
  });
  add("dynamic shape", {{{"n", 3}}, {{"n", 0}}, {{"n", 33}}}, [=](Model &m) {
    Value x = m.input(type + "[n, 6]");
    Value shape = m.input("i64[2]", Fill::range(3, 3)), wide = m.input("i64[3]", Fill::range(6, 6));
    Value row = m.input(type + "[1, 6]");
    exact(m, m.op("dynamic_broadcast", {row, wide}, "", type + "[$a, $b, $c]"));
    Value minus =
        m.op("concat",
             {m.op("slice", {shape}, "starts = #graph.dims<0>, steps = array<i64: 1>", "i64[1]"),
              m.integers({-1})},
             "axis = 0");
    Value y = m.op("dynamic_reshape", {x, minus}, "", type + "[$r, $s]");
    exact(m, y);
    exact(m, m.op("transpose", {y}, "permutation = array<i64: 1, 0>"));
  });
}

/// Reads along one axis, or not along the last, with ops on them.
static void addSquares(Cases &cases, const string &type) {
  std::vector<Sizes> runs = {{{"n", 3}, {"m", 47}}, {{"n", 1}, {"m", 16}}, {{"n", 2}, {"m", 0}}};
  auto add = [&](const string &name, std::function<void(Model &)> build) {
    cases.push_back({"movement/squares " + name + " " + type, std::move(build), runs});
  };
  auto turned = [](Model &m, Value x, const char *permutation) {
    return m.op("transpose", {x}, string("permutation = array<i64: ") + permutation + ">");
  };
  auto plus = [](Model &m, Value x, Value y) { return m.op("add", {x, m.broadcastTo(y, x)}); };
  add("with ops", [=](Model &m) {
    Value x = m.input(type + "[n, 24, m]", Fill::any()), y = m.input(type + "[n, m, 24]"),
          row = m.input(type + "[24]"), column = m.input(type + "[m, 1]");
    Value sum = m.op("add", {turned(m, x, "0, 2, 1"), y});
    m.output(m.op("tanh", {plus(m, plus(m, sum, row), column)}));
    m.output(turned(m, m.op("mul", {sum, sum}), "0, 2, 1"));
  });
  add("of a concat", [=](Model &m) {
    Fill fill = type == "f16" ? Fill() : Fill::any(); // a product beyond f16 is not rounded to it
    auto joined = [&](std::vector<int> widths) {
      Values parts;
      for (int width : widths)
        parts.push_back(m.input(type + "[n, m, " + std::to_string(width) + "]", fill));
      return m.op("concat", parts, "axis = 2");
    };
    Value x = joined({32, 7, 0, 16}), y = joined({32, 7, 0, 16}), z = joined({39, 16});
    Value product = m.op("mul", {x, m.broadcastTo(m.input(type + "[55]"), x)});
    m.output(m.op("tanh", {m.op("add", {product, y})}));
    // The reference rounds the product of f16, which the sum may cancel.
    m.output(m.op("add", {product, z}), Tolerance::close(m.element(type), 30));
  });
  add("of slices", [=](Model &m) {
    auto sliced = [&](Value x, string starts, string steps, string result) {
      return m.op("slice", {x},
                  "starts = #graph.dims<" + starts + ">, steps = array<i64: " + steps + ">",
                  type + result);
    };
    Value x = m.input(type + "[n, 24, 20, m]", Fill::any());
    Value rows = sliced(x, "0, 5, 0, 0", "1, 1, 1, 1", "[n, 17, 20, m]");
    m.output(turned(m, rows, "0, 2, 3, 1"));
    m.output(plus(m, turned(m, rows, "0, 3, 2, 1"), m.input(type + "[17]")));
    Value few = sliced(x, "0, 3, 2, 0", "1, 1, 1, 1", "[n, 1, 16, m]");
    m.output(turned(m, few, "0, 2, 3, 1"));
    m.output(turned(m, few, "3, 0, 1, 2"));
    Value apart = sliced(x, "0, 22, 1, 0", "1, -1, 2, 1", "[n, 20, 9, m]");
    m.output(turned(m, apart, "0, 2, 3, 1"));
    Value part =
        sliced(m.input(type + "[n, m, 40]", Fill::any()), "0, 0, 3", "1, 1, 1", "[n, m, 33]");
    m.output(turned(m, part, "0, 2, 1"));
    m.output(turned(m, m.op("add", {part, m.input(type + "[n, m, 33]")}), "2, 0, 1"));
    Value second =
        sliced(m.input(type + "[n, m, 40]", Fill::any()), "0, 0, 39", "1, 1, -1", "[n, m, 40]");
    m.output(turned(m, second, "0, 2, 1"));
  });
  add("in a concat", [=](Model &m) {
    Value x = m.input(type + "[n, m, 24]"), y = m.input(type + "[n, 8, m]");
    Value sum = plus(m, x, m.input(type + "[24]"));
    m.output(m.op("concat", {y, turned(m, sum, "0, 2, 1")}, "axis = 1"));
    m.output(m.op("concat", {turned(m, y, "0, 2, 1"), turned(m, y, "0, 2, 1"), x}, "axis = 2"));
  });
  add("narrow", [=](Model &m) {
    Value x = m.input(type + "[n, 3, m, 2, 2, 1]", Fill::any()), y = m.input(type + "[n, 3, 5, m]"),
          row = m.input(type + "[3]");
    m.output(m.op("sigmoid", {plus(m, turned(m, x, "0, 1, 3, 2, 4, 5"), m.input(type + "[1]"))}));
    m.output(plus(m, turned(m, y, "0, 2, 3, 1"), row));
  });
}

void addMovement(Cases &cases) {
  for (const char *type : {"f32", "f16", "bf16", "f64"})
    addSquares(cases, type);
  for (const char *type : {"f32", "f16", "f64", "i8", "i64", "ui16", "i1"})
    for (auto family : {addMoves, addPads, addDynamicMoves})
      family({cases, type}, type);
  for (const char *type : {"i64", "i32", "f32", "ui8", "f64"})
    cases.push_back({string("movement/iota ") + type,
                     [=](Model &m) {
                       m.input("f32[n, m]");
                       m.output(m.op("iota", {}, "axis = 0", string(type) + "[n, m]"));
                       m.output(m.op("iota", {}, "axis = 1", string(type) + "[n, m]"));
                       m.output(m.op("iota", {}, "axis = 0", string(type) + "[100]"));
                     },
                     kRuns});
  for (const char *type : {"i64", "i32"})
    cases.push_back({string("movement/sizes ") + type,
                     [=](Model &m) {
                       m.input("f32[n, m]");
                       m.output(m.op("sizes", {}, "values = #graph.dims<\"n\", -1, \"2*m + n\">",
                                     string(type) + "[3]"));
                       m.output(
                           m.op("sizes", {}, "values = #graph.dims<\"m*n\">", string(type) + "[]"));
                     },
                     kRuns});
  for (const char *type : {"i64", "i32", "f32", "f64", "bf16", "f16"})
    cases.push_back({string("movement/range ") + type,
                     [=](Model &m) {
                       Value start = m.input(string(type) + "[]", Fill::range(-3, 3));
                       Value limit = m.input(string(type) + "[]", Fill::range(4, 40));
                       Value delta = m.input(string(type) + "[]", Fill::range(1, 3));
                       Value down = m.op("neg", {delta});
                       m.output(m.op("range", {start, limit, delta}, "", string(type) + "[$a]"));
                       m.output(m.op("range", {limit, start, down}, "", string(type) + "[$b]"));
                       m.output(m.op("range", {start, limit, down}, "", string(type) + "[$c]"));
                     },
                     {{}, {}, {}}});
}

} // namespace heddle::ops
