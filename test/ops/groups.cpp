// groups: the fusions that models are made of.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

static const std::vector<Sizes> kRuns = {
    {{"n", 3}, {"m", 17}}, {{"n", 16}, {"m", 1}}, {{"n", 1}, {"m", 100}}, {{"n", 0}, {"m", 5}}};

static const char kSame[] = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = "
                            "array<i64: 1, 1>, high = array<i64: 1, 1>";
static const char kNone[] = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = "
                            "array<i64: 0, 0>, high = array<i64: 0, 0>";

namespace {
/// Words for building; `type` is the element type of all tensors.
struct Builder {
  Model &m;
  string type;

  Value unary(const char *op, Value x) { return m.op(op, {x}); }
  /// y is broadcast to the shape of x.
  Value with(const char *op, Value x, Value y) { return m.op(op, {x, m.broadcastTo(y, x)}); }
  Value number(double value) { return m.scalar(type, value); }
  Value relu(Value x) { return with("max", x, number(0)); }
  Value mean(Value x, int64_t axis, double count) {
    Value sum = m.op("reduce_sum", {x},
                     "axes = array<i64: " + std::to_string(axis) + ">, keep_dims = true");
    return with("mul", sum, number(1 / count));
  }
  Value softmax(Value x, int64_t axis) {
    string axes = "axes = array<i64: " + std::to_string(axis) + ">, keep_dims = true";
    Value e = unary("exp", with("sub", x, m.op("reduce_max", {x}, axes)));
    return with("div", e, m.op("reduce_sum", {e}, axes));
  }
  Value layerNorm(Value x, int64_t axis, double count, Value scale, Value bias) {
    Value centred = with("sub", x, mean(x, axis, count));
    Value variance = mean(m.op("mul", {centred, centred}), axis, count);
    Value root = unary("sqrt", with("add", variance, number(1e-5)));
    return with("add", with("mul", with("div", centred, root), scale), bias);
  }
  Value gelu(Value x) {
    Value e = unary("erf", with("mul", x, number(0.70710678)));
    return m.op("mul", {with("mul", x, number(0.5)), with("add", e, number(1))});
  }
  Value transposed(Value x, const char *permutation) {
    return m.op("transpose", {x}, string("permutation = array<i64: ") + permutation + ">");
  }
  void output(Value x, double scale = 10) { m.output(x, Tolerance::close(m.element(type), scale)); }
};

/// Adds cases "group/NAME TYPE".
struct Adder {
  Cases &cases;
  string type;
  void operator()(const string &name, std::vector<Sizes> runs,
                  std::function<void(Builder &)> build) const {
    cases.push_back({"group/" + name + " " + type,
                     [type = type, build = std::move(build)](Model &m) {
                       Builder builder{m, type};
                       build(builder);
                     },
                     std::move(runs)});
  }
};
} // namespace

static void addRows(const Adder &add, const string &type) {
  add("softmax", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 7, m]");
    b.output(b.softmax(x, 2), 1);
    b.output(b.softmax(x, 1), 1);
    b.output(b.softmax(b.m.input(type + "[n, 33]", Fill::range(-9, 9)), 1), 1);
  });
  add("layer norm", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[n, m, 48]");
    Value scale = b.m.constant(type + "[48]"), bias = b.m.constant(type + "[48]");
    b.output(b.layerNorm(x, 2, 48, scale, bias));
    Value y = b.m.input(type + "[n, m, 48]");
    b.output(b.gelu(b.layerNorm(b.m.op("add", {x, y}), 2, 48, scale, bias)));
  });
  add("sums of rows as a row", {{{"n", 4}}, {{"n", 17}}}, [=](Builder &b) {
    Value x = b.m.input(type + "[n, n]");
    Value sums = b.m.op("reduce_sum", {x}, "axes = array<i64: 1>, keep_dims = false");
    Value product = b.m.op("mul", {x, b.m.broadcastTo(sums, x)});
    b.output(b.m.op("reduce_sum", {product}, "axes = array<i64: 1>, keep_dims = false"), 100);
  });
  add("residual", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 33]");
    Value w = b.m.constant(type + "[33, 49]"),
          v = b.m.constant(type + "[49, 33]", Fill::range(-0.2, 0.2));
    Value h = b.m.op("matmul", {x, w}, "", type + "[n, 49]");
    h = b.gelu(b.with("add", h, b.m.constant(type + "[49]")));
    Value r = b.m.op("matmul", {h, v}, "", type + "[n, 33]");
    r = b.m.op("add", {b.with("add", r, b.m.constant(type + "[33]")), x});
    b.output(r, 60);
    b.output(b.relu(r), 60);
  });
}

/// Apollo's Layer II: the rows of a product's result in one kernel with the reductions over them.
static void addStitches(const Adder &add, const string &type) {
  auto project = [=](Builder &b, Value x, const string &result) {
    Value w = b.m.constant(type + "[33, 49]", Fill::range(-0.3, 0.3));
    if (result.find(", m,") != string::npos)
      w = b.m.constant(type + "[1, 33, 49]", Fill::range(-0.3, 0.3));
    return b.with("add", b.m.op("matmul", {x, w}, "", type + result), b.m.constant(type + "[49]"));
  };
  add("projection and layer norm", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[n, m, 33]"), y = b.m.input(type + "[n, m, 49]");
    Value scale = b.m.constant(type + "[49]"), bias = b.m.constant(type + "[49]");
    b.output(b.layerNorm(project(b, x, "[n, m, 49]"), 2, 49, scale, bias), 100);
    // The sum is read by what follows the norm, too.
    Value sum = b.m.op("add", {b.gelu(project(b, x, "[n, m, 49]")), y});
    Value norm = b.layerNorm(sum, 2, 49, scale, bias);
    b.output(norm, 100);
    b.output(b.m.op("add", {sum, b.relu(norm)}), 100);
  });
  add("projection read before its norm", kRuns, [=](Builder &b) {
    Value sum = project(b, b.m.input(type + "[n, 33]"), "[n, 49]");
    Value early = b.m.op("reduce_max", {b.gelu(sum)}, "axes = array<i64: 0>, keep_dims = true");
    b.output(early, 30);
    Value norm = b.layerNorm(b.m.op("mul", {sum, b.m.broadcastTo(early, sum)}), 1, 49,
                             b.m.constant(type + "[49]"), b.m.constant(type + "[49]"));
    b.output(b.m.op("add", {norm, b.softmax(sum, 1)}), 200);
  });
  add("classifier", {{{"n", 33}}, {{"n", 1}}, {{"n", 0}}}, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 33]", Fill::any());
    Value mask = b.m.input(type + "[n, 49]", Fill::any());
    b.output(b.softmax(project(b, x, "[n, 49]"), 1), 30);
    Value scores = b.m.op("max", {project(b, x, "[n, 49]"), mask});
    b.output(b.m.op("reduce_max", {scores}, "axes = array<i64: 1>, keep_dims = false"), 30);
    b.output(b.m.op("matmul", {b.m.input(type + "[5, 7]"), b.m.constant(type + "[7, 1]")}, "",
                    type + "[5, 1]"));
  });
}

/// Products that are read in parts: gates of a recurrent cell, a gated linear unit.
static void addGates(const Adder &add, const string &type) {
  auto part = [=](Builder &b, Value x, int64_t number, const string &result) {
    bool isOfThree = result.find(", m,") != string::npos;
    int64_t columns = std::stoi(result.substr(result.rfind(' ') + 1));
    return b.m.op("slice", {x},
                  string("starts = #graph.dims<0, ") + (isOfThree ? "0, " : "") +
                      std::to_string(number * columns) + ">, steps = array<i64: 1, 1" +
                      (isOfThree ? ", 1>" : ">"),
                  type + result);
  };
  add("cell", kRuns, [=](Builder &b) {
    for (bool isConstant : {true, false}) {
      Value h = b.m.input(type + "[n, 33]"), c = b.m.input(type + "[n, 20]");
      string weight = type + "[33, 80]";
      Value w = isConstant ? b.m.constant(weight, Fill::range(-0.3, 0.3)) : b.m.input(weight);
      Value sum = b.m.op(
          "add", {b.m.op("matmul", {h, w}, "", type + "[n, 80]"), b.m.input(type + "[n, 80]")});
      auto gate = [&](int64_t number) { return part(b, sum, number, "[n, 20]"); };
      Value kept = b.m.op("mul", {b.unary("sigmoid", gate(2)), c});
      Value added = b.m.op("mul", {b.unary("sigmoid", gate(0)), b.unary("tanh", gate(3))});
      Value next = b.m.op("add", {kept, added});
      b.output(b.m.op("mul", {b.unary("sigmoid", gate(1)), b.unary("tanh", next)}), 60);
      b.output(next, 60);
    }
  });
  add("gated linear unit", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[n, m, 33]");
    Value w = b.m.constant(type + "[1, 33, 98]", Fill::range(-0.3, 0.3));
    Value both = b.m.op("matmul", {x, w}, "", type + "[n, m, 98]");
    both = b.with("add", both, b.m.constant(type + "[98]"));
    Value left = part(b, both, 0, "[n, m, 49]"), right = part(b, both, 1, "[n, m, 49]");
    b.output(b.m.op("mul", {b.m.op("mul", {left, b.unary("sigmoid", left)}), right}), 60);
    // One part alone, and parts of parts that are read elsewhere.
    Value third = b.m.op("matmul", {b.m.input(type + "[n, 33]"), b.m.constant(type + "[33, 48]")},
                         "", type + "[n, 48]");
    b.output(part(b, third, 2, "[n, 16]"), 60);
    Value again = b.relu(part(b, third, 1, "[n, 16]"));
    b.output(b.m.op("reduce_max", {again}, "axes = array<i64: 0>, keep_dims = false"), 60);
    b.output(b.m.op("add", {again, part(b, third, 0, "[n, 16]")}), 60);
  });
}

static void addPlaced(const Adder &add, const string &type) {
  // Operands that their kernels write into the concat's result.
  add("concat in place", kRuns, [=](Builder &b) {
    auto dense = [&](Value x, const string &weight, const string &result) {
      Value w = b.m.constant(type + weight, Fill::range(-0.3, 0.3));
      return b.relu(b.m.op("matmul", {x, w}, "", type + result));
    };
    Value x = b.m.input(type + "[n, 33]"), y = b.m.input(type + "[n, m, 33]");
    Value wide = dense(x, "[33, 49]", "[n, 49]"), narrow = dense(x, "[33, 7]", "[n, 7]");
    Value rows = b.softmax(x, 1);
    b.output(b.m.op("concat", {wide, rows, x, narrow}, "axis = 1"), 60);
    b.output(narrow, 60); // so that it is copied
    Value more = b.m.op("concat", {dense(x, "[33, 5]", "[n, 5]"), dense(x, "[33, 5]", "[n, 5]")},
                        "axis = 0");
    b.output(b.softmax(more, 1), 60);
    Value inner =
        b.m.op("concat",
               {dense(y, "[1, 33, 16]", "[n, m, 16]"), b.softmax(b.m.input(type + "[n, 3, 16]"), 2),
                dense(y, "[1, 33, 16]", "[n, m, 16]")},
               "axis = 1");
    b.output(inner, 60);
    b.output(b.m.op("reduce_max", {inner}, "axes = array<i64: 2>, keep_dims = false"), 60);
  });
  add("attention", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[n, m, 32]");
    auto heads = [&](const char *order) {
      Value w = b.m.constant(type + "[1, 32, 32]", Fill::range(-0.3, 0.3));
      Value p = b.m.op("matmul", {x, w}, "", type + "[n, m, 32]");
      return b.transposed(b.m.op("reshape", {p}, "", type + "[n, m, 4, 8]"), order);
    };
    Value q = heads("0, 2, 1, 3"), k = heads("0, 2, 3, 1"), v = heads("0, 2, 1, 3");
    Value scores = b.m.op("matmul", {q, k}, "", type + "[n, 4, m, m]");
    Value mask = b.m.input(type + "[n, 1, 1, m]");
    Value p = b.softmax(b.with("add", b.with("mul", scores, b.number(0.35)), mask), 3);
    Value mixed = b.m.op("matmul", {p, v}, "", type + "[n, 4, m, 8]");
    b.output(b.m.op("reshape", {b.transposed(mixed, "0, 2, 1, 3")}, "", type + "[n, m, 32]"), 20);
  });
  add("slices", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 33]"), y = b.m.input(type + "[n, 7]");
    Value low = b.m.op("slice", {x}, "starts = #graph.dims<0, 0>, steps = array<i64: 1, 1>",
                       type + "[n, 16]");
    Value high = b.m.op("slice", {x}, "starts = #graph.dims<0, 17>, steps = array<i64: 1, 1>",
                        type + "[n, 16]");
    Value turned = b.m.op("concat", {b.unary("neg", high), low}, "axis = 1");
    b.output(b.with("mul", turned, b.m.constant(type + "[32]")));
    b.output(b.relu(b.m.op("concat", {b.unary("abs", y), x, b.relu(y)}, "axis = 1")));
    b.output(b.m.op("mul", {low, b.unary("sigmoid", high)}));
  });
}

static void addImages(const Adder &add, const string &type) {
  std::vector<Sizes> runs = {{{"n", 1}, {"h", 7}}, {{"n", 2}, {"h", 16}}};
  auto conv = [=](Builder &b, Value x, const string &w, const string &result,
                  const string &attributes) {
    Value y = b.m.op("conv", {x, b.m.constant(type + w, Fill::range(-0.5, 0.5))}, attributes,
                     type + result);
    string channels = result.substr(result.find(',') + 1);
    channels = channels.substr(0, channels.find(','));
    return b.with("add", y, b.m.constant(type + "[1," + channels + ", 1, 1]"));
  };
  add("conv bias relu", runs, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 3, h, 9]");
    Value y = b.relu(conv(b, x, "[17, 3, 3, 3]", "[n, 17, h, 9]", kSame));
    b.output(y, 20);
    Value z = b.relu(conv(b, y, "[17, 1, 3, 3]", "[n, 17, h, 9]", string(kSame) + ", groups = 17"));
    b.output(conv(b, z, "[33, 17, 1, 1]", "[n, 33, h, 9]", kNone), 60);
  });
  add("conv residual", runs, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 16, h, 9]");
    Value y = b.relu(conv(b, x, "[16, 16, 3, 3]", "[n, 16, h, 9]", kSame));
    y = conv(b, y, "[16, 16, 3, 3]", "[n, 16, h, 9]", kSame);
    Value sum = b.relu(b.m.op("add", {y, x}));
    b.output(sum, 200);
    Value pooled =
        b.m.op("pool", {sum}, string("kind = \"max\", window = array<i64: 3, 3>, ") + kSame,
               type + "[n, 16, h, 9]");
    b.output(b.m.op("concat", {pooled, x}, "axis = 1"), 200);
  });
  add("pad conv", runs, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 5, h, 9]");
    Value padded = b.m.op("pad", {x, b.number(0)},
                          "low = #graph.dims<0, 0, 1, 1>, high = #graph.dims<0, 0, 1, 1>");
    b.output(b.relu(conv(b, padded, "[9, 5, 3, 3]", "[n, 9, h, 9]", kNone)), 20);
    Value mirrored =
        b.m.op("pad", {x, b.number(0)},
               "low = #graph.dims<0, 0, 1, 1>, high = #graph.dims<0, 0, 1, 1>, mode = \"reflect\"");
    b.output(conv(b, mirrored, "[9, 5, 3, 3]", "[n, 9, h, 9]", kNone), 20);
  });
  add("squeeze excite", runs, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 20, h, h]");
    Value mean = b.m.op("reduce_sum", {x}, "axes = array<i64: 2, 3>, keep_dims = true");
    mean = b.with("mul", mean, b.number(1.0 / 100));
    Value s = b.relu(conv(b, mean, "[5, 20, 1, 1]", "[n, 5, 1, 1]", kNone));
    s = b.unary("sigmoid", conv(b, s, "[20, 5, 1, 1]", "[n, 20, 1, 1]", kNone));
    b.output(b.with("mul", x, s));
  });
  add("upsample concat", runs, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 8, h, 5]"), half = b.m.input(type + "[n, 4, h, 10]");
    Value y = b.m.op("concat", {half, b.unary("neg", half)}, "axis = 2");
    Value up = b.m.op("resize", {b.relu(x)},
                      "scales = array<f64: 1.0, 1.0, 2.0, 2.0>, mode = \"nearest\", coordinates = "
                      "\"asymmetric\", nearest = \"floor\"",
                      type + "[n, 8, 2*h, 10]");
    Value both = b.m.op("concat", {up, y}, "axis = 1");
    b.output(conv(b, both, "[7, 12, 3, 3]", "[n, 7, 2*h, 10]", kSame), 40);
  });
  add("sizes that turn out equal at run time",
      {{{"n", 2}, {"h", 3}, {"g", 6}}, {{"n", 1}, {"h", 50}, {"g", 100}}}, [=](Builder &b) {
        Value x = b.m.input(type + "[n, h, 24]"), y = b.m.input(type + "[n, g, 20]");
        Value up = b.m.op("resize", {b.relu(x)},
                          "scales = array<f64: 1.0, 2.0, 1.0>, mode = \"nearest\", coordinates = "
                          "\"asymmetric\", nearest = \"floor\"",
                          type + "[n, 2*h, 24]");
        b.output(b.m.op("concat", {up, b.unary("neg", y)}, "axis = 2"));
      });
  add("sizes that turn out to be 1 at run time",
      {{{"h", 3}, {"g", 6}}, {{"h", 1}, {"g", 1}}, {{"h", 20}, {"g", 1}}}, [=](Builder &b) {
        Value x = b.m.input(type + "[3, h, 24]"), y = b.m.input(type + "[3, g, 24]");
        Value up = b.m.op("resize", {b.relu(x)},
                          "scales = array<f64: 1.0, 2.0, 1.0>, mode = \"nearest\", coordinates = "
                          "\"asymmetric\", nearest = \"floor\"",
                          type + "[3, 2*h, 24]");
        string both = type + "[3, max(2*h, g), 24]";
        b.output(b.m.op("add",
                        {b.m.op("broadcast", {up}, "", both), b.m.op("broadcast", {y}, "", both)},
                        "", both));
      });
  add("shuffle", runs, [=](Builder &b) {
    Value x = b.m.input(type + "[n, 12, h, 5]");
    Value split = b.m.op("reshape", {b.relu(x)}, "", type + "[n, 3, 4, h, 5]");
    b.output(b.m.op("reshape", {b.transposed(split, "0, 2, 1, 3, 4")}, "", type + "[n, 12, h, 5]"));
    Value depth = b.m.op("reshape", {x}, "", type + "[n, 2, 2, 3, h, 5]");
    b.output(
        b.m.op("reshape", {b.transposed(depth, "0, 3, 4, 1, 5, 2")}, "", type + "[n, 3, 2*h, 10]"));
  });
}

namespace {
/// A step of Adam with fixed rates: new weight, first and second moment.
void adamStep(Builder &b, const string &shape) {
  Value w = b.m.input(b.type + shape), m = b.m.input(b.type + shape),
        v = b.m.input(b.type + shape, Fill::range(0, 2)), g = b.m.input(b.type + shape);
  auto blend = [&](Value old, double keep, Value fresh) {
    return b.m.op("add",
                  {b.with("mul", old, b.number(keep)), b.with("mul", fresh, b.number(1 - keep))});
  };
  Value first = blend(m, 0.9, g), second = blend(v, 0.99, b.m.op("mul", {g, g}));
  Value root = b.with("add", b.unary("sqrt", second), b.number(1e-3));
  Value step = b.with("mul", b.m.op("div", {first, root}), b.number(0.1));
  b.output(b.m.op("sub", {w, step}));
  b.output(first);
  b.output(second);
}
} // namespace

/// Groups with several results.
static void addSiblings(const Adder &add, const string &type) {
  add("adam", kRuns, [=](Builder &b) { adamStep(b, "[n, m]"); });
  add("adam of short rows", kRuns, [=](Builder &b) { adamStep(b, "[n, m, 3]"); });
  for (size_t i = add.cases.size() - 2, end = add.cases.size(); i < end; ++i) {
    Case one = add.cases[i];
    one.name += " in place";
    one.inPlace = true;
    add.cases.push_back(std::move(one));
  }
  add("what a norm keeps for its derivative", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[32, n, m]"), dy = b.m.input(type + "[32, n, m]");
    Value centred = b.with("sub", x, b.mean(x, 2, 33));
    Value root = b.unary(
        "sqrt", b.with("add", b.mean(b.m.op("mul", {centred, centred}), 2, 33), b.number(1e-2)));
    Value normal = b.with("div", centred, root);
    Value slope = b.mean(b.m.op("mul", {dy, normal}), 2, 33);
    b.output(b.with("div", b.m.op("sub", {dy, b.with("mul", normal, slope)}), root), 400);
    b.output(normal, 40);
    b.output(root);
  });
  add("a reader between siblings", kRuns, [=](Builder &b) {
    Value x = b.m.input(type + "[n, m]"), y = b.m.input(type + "[n, m]");
    Value sum = b.m.op("add", {x, y});
    b.output(b.transposed(sum, "1, 0"));
    b.output(b.m.op("mul", {sum, y}));
    b.output(sum);
  });
}

void addGroups(Cases &cases) {
  for (const char *type : {"f32", "f64"}) {
    for (auto family : {addRows, addStitches, addGates, addPlaced, addImages, addSiblings})
      family({cases, type}, type);
  }
  // Too long for the tolerance of f16: only what stays near its inputs.
  cases.push_back({"group/softmax f16",
                   [](Model &m) {
                     Builder b{m, "f16"};
                     b.output(b.softmax(m.input("f16[n, m]"), 1), 1);
                   },
                   kRuns});
}

} // namespace heddle::ops
