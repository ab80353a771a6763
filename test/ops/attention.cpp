// attention: the forms in which models write attention; each must become one kernel.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {
/// Words for building; `type` is the element type of all tensors.
struct Builder {
  Model &m;
  string type;

  string of(const string &dims) { return type + "[" + dims + "]"; }
  Value input(const string &dims, Fill fill = Fill()) { return m.input(of(dims), fill); }
  Value unary(const char *op, Value x) { return m.op(op, {x}); }
  /// y is broadcast to the shape of x.
  Value with(const char *op, Value x, Value y) { return m.op(op, {x, m.broadcastTo(y, x)}); }
  Value scaled(Value x, double factor) { return with("mul", x, m.scalar(type, factor)); }
  Value product(Value a, Value b, const string &dims) {
    return m.op("matmul", {a, b}, "", of(dims));
  }
  Value reshape(Value x, const string &dims) { return m.op("reshape", {x}, "", of(dims)); }
  Value transposed(Value x, const string &permutation) {
    return m.op("transpose", {x}, "permutation = array<i64: " + permutation + ">");
  }
  Value fold(const char *op, Value x) {
    int64_t axis = graph::rankOf(x) - 1;
    return m.op(op, {x}, "axes = array<i64: " + std::to_string(axis) + ">, keep_dims = true");
  }
  Value powers(Value x) { return unary("exp", with("sub", x, fold("reduce_max", x))); }
  Value softmax(Value x) {
    Value e = powers(x);
    return with("div", e, fold("reduce_sum", e));
  }
  Value negativeInfinity(Value like) {
    return m.broadcastTo(m.scalar(type, -std::numeric_limits<double>::infinity()), like);
  }
  Value iota(const string &type, int64_t axis) {
    return m.op("iota", {}, "axis = " + std::to_string(axis), type);
  }
  /// Keeps scores of keys at or before the query.
  Value causal(Value scores, const string &rows, const string &columns) {
    string dims = "i64[" + rows + ", " + columns + "]";
    Value isSeen = m.op("greater_equal", {iota(dims, 0), iota(dims, 1)});
    return m.op("select", {m.broadcastTo(isSeen, scores), scores, negativeInfinity(scores)});
  }
  void output(Value x, double scale = 10) { m.output(x, Tolerance::close(m.element(type), scale)); }
};
} // namespace

static const std::vector<Sizes> kRuns = {
    {{"b", 2}, {"s", 17}, {"t", 33}}, {{"b", 1}, {"s", 64}, {"t", 48}},
    {{"b", 3}, {"s", 1}, {"t", 5}},   {{"b", 1}, {"s", 7}, {"t", 0}},
    {{"b", 1}, {"s", 0}, {"t", 4}},   {{"b", 0}, {"s", 3}, {"t", 4}}};

static void add(Cases &cases, const string &name, const string &type,
                std::function<void(Builder &)> build, std::vector<Sizes> runs = kRuns,
                std::map<string, int64_t> groups = {{"attention", 1}}) {
  cases.push_back({"attention/" + name + " " + type,
                   [=](Model &m) {
                     Builder builder{m, type};
                     build(builder);
                   },
                   std::move(runs), std::move(groups)});
}

/// Cases of ops between the products.
static void addMiddles(Cases &cases, const string &type) {
  auto addMiddle = [&](const string &name, std::function<Value(Builder &, Value)> logits,
                       Fill fill = Fill()) {
    add(cases, name, type, [=](Builder &b) {
      Value q = b.input("b, 3, s, 16", fill), k = b.input("b, 3, 16, t", fill),
            v = b.input("b, 3, t, 16", fill);
      Value weights = b.softmax(logits(b, b.product(q, k, "b, 3, s, t")));
      b.output(b.product(weights, v, "b, 3, s, 16"));
    });
  };
  addMiddle("plain", [](Builder &b, Value x) { return x; });
  addMiddle("numbers of all kinds", [](Builder &b, Value x) { return x; }, Fill::any());
  addMiddle("scaled", [](Builder &b, Value x) { return b.scaled(x, 0.25); });
  addMiddle("additive mask", [](Builder &b, Value x) {
    return b.with("add", b.scaled(x, 0.25), b.input("b, 1, 1, t"));
  });
  addMiddle("bias of each score", [](Builder &b, Value x) {
    return b.with("add", b.scaled(x, 0.25), b.input("3, s, t"));
  });
  addMiddle("boolean mask", [](Builder &b, Value x) {
    Value mask = b.m.broadcastTo(b.m.input("i1[b, 1, s, t]"), x);
    return b.m.op("select", {mask, x, b.negativeInfinity(x)});
  });
  addMiddle("rows without keys", [](Builder &b, Value x) {
    Value mask = b.m.broadcastTo(b.m.input("i1[b, 1, s, 1]"), x);
    return b.m.op("select", {mask, x, b.negativeInfinity(x)});
  });
  addMiddle("causal", [](Builder &b, Value x) { return b.causal(b.scaled(x, 0.25), "s", "t"); });
  addMiddle("soft cap",
            [](Builder &b, Value x) { return b.scaled(b.unary("tanh", b.scaled(x, 0.1)), 10); });
}

/// Versions, at each bound and just above it.
static void addVersions(Cases &cases, const string &type) {
  auto sizes = [](std::vector<std::pair<int64_t, int64_t>> pairs) {
    std::vector<Sizes> runs;
    for (auto [s, t] : pairs)
      runs.push_back({{"b", 2}, {"s", s}, {"t", t}});
    return runs;
  };
  add(
      cases, "versions", type,
      [](Builder &b) {
        Value q = b.input("b, 3, s, 16"), k = b.input("b, 3, 16, t"), v = b.input("b, 3, t, 16");
        b.output(b.product(b.softmax(b.product(q, k, "b, 3, s, t")), v, "b, 3, s, 16"));
      },
      sizes({{5, 4}, {5, 5}, {5, 6}, {8, 20}, {9, 20}, {8, 21}, {3, 100}, {0, 5}}));
  cases.back().card = "attention";
  cases.back().versions = R"([{"when": {"t": 5}, "knobs": {"m": 4, "n": 16}},
                              {"when": {"s": 8, "t": 20}, "knobs": {"m": 2, "n": 32}}])";
}

/// Cases of ops after the softmax.
static void addEnds(Cases &cases, const string &type) {
  auto inputs = [](Builder &b) {
    return Values{b.input("b, 3, s, 16"), b.input("b, 3, 16, t"), b.input("b, 3, t, 20")};
  };
  add(cases, "divided after the product", type,
      [=](Builder &b) {
        Values in = inputs(b);
        Value powers = b.powers(b.product(in[0], in[1], "b, 3, s, t"));
        Value mixed = b.product(powers, in[2], "b, 3, s, 20");
        b.output(b.with("div", mixed, b.fold("reduce_sum", powers)));
      },
      {kRuns[0], kRuns[1], kRuns[2]});
  add(cases, "rows of NaN as zeros", type, [=](Builder &b) {
    Values in = inputs(b);
    Value x = b.product(in[0], in[1], "b, 3, s, t");
    Value mask = b.m.broadcastTo(b.m.input("i1[b, 1, s, 1]"), x);
    Value p = b.softmax(b.m.op("select", {mask, x, b.negativeInfinity(x)}));
    Value zero = b.m.broadcastTo(b.m.scalar(type, 0), p);
    p = b.m.op("select", {b.m.op("is_nan", {p}), zero, p});
    b.output(b.product(p, in[2], "b, 3, s, 20"));
  });
  add(cases, "merged heads", type, [=](Builder &b) {
    Values in = inputs(b);
    Value p = b.softmax(b.scaled(b.product(in[0], in[1], "b, 3, s, t"), 0.25));
    Value mixed = b.transposed(b.product(p, in[2], "b, 3, s, 20"), "0, 2, 1, 3");
    b.output(b.reshape(mixed, "b, s, 60"));
  });
  add(cases, "one head of one number, merged", type, [=](Builder &b) {
    Value q = b.input("b, 1, s, 8"), k = b.input("b, 1, 8, t"), v = b.input("b, 1, t, 1");
    Value p = b.softmax(b.product(q, k, "b, 1, s, t"));
    b.output(b.reshape(b.transposed(b.product(p, v, "b, 1, s, 1"), "0, 2, 1, 3"), "b, s, 1"));
  });
  add(cases, "weights also wanted", type,
      [=](Builder &b) {
        Values in = inputs(b);
        Value p = b.softmax(b.product(in[0], in[1], "b, 3, s, t"));
        b.output(p);
        b.output(b.product(p, in[2], "b, 3, s, 20"));
      },
      kRuns, {{"attention", 0}});
}

/// Softmaxes that keep their exponentials where their shares will be: in the place of what they
/// read, and where a concat has them.
static void addAlone(Cases &cases, const string &type) {
  add(cases, "softmaxes alone", type,
      [=](Builder &b) {
        Value x = b.product(b.input("b, 3, s, 16"), b.input("b, 3, 16, t"), "b, 3, s, t");
        Value p = b.softmax(b.softmax(b.softmax(x)));
        b.output(p);
        b.output(b.m.op("concat", {b.softmax(b.scaled(x, 0.5)), b.softmax(p)}, "axis = 2",
                        b.of("b, 3, 2*s, t")));
      },
      kRuns, {});
}

/// Heads that share keys, of which each query sees those up to a place.
static void addPlaces(Cases &cases, const string &type) {
  add(cases, "grouped queries as rows, keys up to a place", type,
      [=](Builder &b) {
        Value q = b.reshape(b.input("b, 6, s, 16"), "b, 2, 3*s, 16"), k = b.input("b, 2, 16, t"),
              v = b.input("b, 2, t, 16");
        Value x = b.reshape(b.product(q, k, "b, 2, 3*s, t"), "b, 6, s, t");
        Value place = b.m.input("i64[b, 1, s, 1]", Fill::range(-9, 180));
        place = b.m.op("broadcast", {place}, "", "i64[b, 1, s, t]");
        Value key = b.m.op("broadcast", {b.iota("i64[t]", 0)}, "", "i64[b, 1, s, t]");
        Value isSeen = b.m.broadcastTo(b.m.op("less_equal", {key, place}), x);
        Value p = b.softmax(b.m.op("select", {isSeen, x, b.negativeInfinity(x)}));
        p = b.reshape(p, "b, 2, 3*s, t");
        b.output(b.reshape(b.product(p, v, "b, 2, 3*s, 16"), "b, 6, s, 16"));
      },
      {{{"b", 2}, {"s", 70}, {"t", 150}},
       {{"b", 1}, {"s", 150}, {"t", 170}},
       {{"b", 2}, {"s", 1}, {"t", 9}},
       {{"b", 1}, {"s", 66}, {"t", 0}}});
}

/// How queries, keys and values arrive.
static void addOperands(Cases &cases, const string &type) {
  add(cases, "heads of one tensor", type, [=](Builder &b) {
    auto heads = [&](const char *order) {
      return b.transposed(b.reshape(b.unary("neg", b.input("b, s, 96")), "b, s, 4, 24"), order);
    };
    Value q = b.scaled(heads("0, 2, 1, 3"), 0.2), k = heads("0, 2, 3, 1"), v = heads("0, 2, 1, 3");
    Value p = b.softmax(b.product(q, k, "b, 4, s, s"));
    Value mixed = b.transposed(b.product(p, v, "b, 4, s, 24"), "0, 2, 1, 3");
    b.output(b.reshape(mixed, "b, s, 96"));
  });
  add(cases, "scaled queries and keys", type, [=](Builder &b) {
    Value q = b.scaled(b.input("b, 2, s, 40"), 0.4),
          k = b.scaled(b.transposed(b.input("b, 2, t, 40"), "0, 1, 3, 2"), 0.4);
    Value p = b.softmax(b.product(q, k, "b, 2, s, t"));
    b.output(b.product(p, b.input("b, 2, t, 70"), "b, 2, s, 70"));
  });
  add(cases, "grouped queries", type, [=](Builder &b) {
    auto repeated = [&] {
      Value x = b.reshape(b.input("b, 2, t, 16"), "b, 2, 1, t, 16");
      x = b.m.op("broadcast", {x}, "", b.of("b, 2, 3, t, 16"));
      return b.reshape(x, "b, 6, t, 16");
    };
    Value k = b.transposed(repeated(), "0, 1, 3, 2");
    Value p = b.softmax(b.scaled(b.product(b.input("b, 6, s, 16"), k, "b, 6, s, t"), 0.25));
    b.output(b.product(p, repeated(), "b, 6, s, 16"));
  });
  add(cases, "grouped queries by batch", type, [=](Builder &b) {
    Value q = b.input("b, 2, 3, s, 16"), k = b.input("b, 2, 1, 16, t"),
          v = b.input("b, 2, 1, t, 16");
    Value p = b.softmax(b.product(q, k, "b, 2, 3, s, t"));
    b.output(b.product(p, v, "b, 2, 3, s, 16"));
  });
  add(cases, "grouped queries as rows", type, [=](Builder &b) {
    Value q = b.reshape(b.input("b, 6, s, 16"), "b, 2, 3*s, 16"), k = b.input("b, 2, 16, t"),
          v = b.input("b, 2, t, 16");
    Value x = b.reshape(b.product(q, k, "b, 2, 3*s, t"), "b, 6, s, t");
    Value p = b.softmax(b.causal(b.with("add", x, b.input("6, s, t")), "s", "t"));
    Value zero = b.m.broadcastTo(b.m.scalar(type, 0), p);
    p = b.m.op("select", {b.m.op("is_nan", {p}), zero, p});
    p = b.reshape(p, "b, 2, 3*s, t");
    b.output(b.reshape(b.product(p, v, "b, 2, 3*s, 16"), "b, 6, s, 16"));
  });
  add(cases, "cached keys", type, [=](Builder &b) {
    auto cached = [&] {
      return b.m.op("concat", {b.input("b, 2, t, 16"), b.input("b, 2, s, 16")}, "axis = 2");
    };
    Value k = b.transposed(cached(), "0, 1, 3, 2");
    Value p = b.softmax(b.product(b.input("b, 2, s, 16"), k, "b, 2, s, t + s"));
    b.output(b.product(p, cached(), "b, 2, s, 16"));
  });
  add(cases, "keys and values in buffers", type,
      [=](Builder &b) {
        auto used = [&](const string &size) {
          return b.m.op("slice", {b.input("b, 2, 70, " + size)},
                        "starts = #graph.dims<0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>",
                        b.of("b, 2, t, " + size));
        };
        Value k = b.transposed(used("d"), "0, 1, 3, 2");
        Value scores = b.product(b.input("b, 2, s, d"), k, "b, 2, s, t");
        Value p = b.softmax(b.causal(b.with("add", scores, b.input("t")), "s", "t"));
        b.output(b.product(p, used("37"), "b, 2, s, 37"));
      },
      {{{"b", 2}, {"s", 1}, {"t", 70}, {"d", 64}},
       {{"b", 1}, {"s", 8}, {"t", 41}, {"d", 13}},
       {{"b", 1}, {"s", 9}, {"t", 33}, {"d", 16}},
       {{"b", 2}, {"s", 3}, {"t", 1}, {"d", 1}},
       {{"b", 1}, {"s", 2}, {"t", 0}, {"d", 5}},
       {{"b", 1}, {"s", 2}, {"t", 7}, {"d", 0}}});
  add(cases, "batch and heads in one", type, [=](Builder &b) {
    auto heads = [&](const string &rows) {
      return b.reshape(b.transposed(b.input("b, " + rows + ", 4, 16"), "0, 2, 1, 3"),
                       "4*b, " + rows + ", 16");
    };
    Value x = b.product(heads("s"), b.transposed(heads("t"), "0, 2, 1"), "4*b, s, t");
    Value masked = b.with("add", b.reshape(x, "b, 4, s, t"), b.input("b, 1, s, t"));
    Value p = b.softmax(b.reshape(masked, "4*b, s, t"));
    Value mixed = b.reshape(b.product(p, heads("t"), "4*b, s, 16"), "b, 4, s, 16");
    b.output(b.reshape(b.transposed(mixed, "0, 2, 1, 3"), "b, s, 64"));
  });
  add(cases, "values in columns", type, [=](Builder &b) {
    Value p = b.softmax(b.product(b.input("b, s, 16"), b.input("b, 16, t"), "b, s, t"));
    b.output(b.product(p, b.transposed(b.input("b, 24, t"), "0, 2, 1"), "b, s, 24"));
  });
}

static void addShapes(Cases &cases, const string &type) {
  auto addShape = [&](const string &batch, const string &rows, const string &depth,
                      const string &columns, const string &width, std::vector<Sizes> runs) {
    add(
        cases, batch + rows + " x " + depth + " x " + columns + " x " + width, type,
        [=](Builder &b) {
          string outer = batch.empty() ? "" : batch + ", ";
          Value q = b.input(outer + rows + ", " + depth),
                k = b.input(outer + depth + ", " + columns),
                v = b.input(outer + columns + ", " + width);
          Value p = b.softmax(b.product(q, k, outer + rows + ", " + columns));
          b.output(b.product(p, v, outer + rows + ", " + width), 20);
        },
        std::move(runs));
  };
  addShape("", "s", "16", "t", "16", kRuns);
  addShape("b", "s", "16", "t", "16", kRuns);
  addShape("b, 2, 2", "s", "16", "t", "16", kRuns);
  addShape("b", "s", "d", "t", "e",
           {{{"b", 2}, {"s", 9}, {"t", 19}, {"d", 33}, {"e", 65}},
            {{"b", 1}, {"s", 6}, {"t", 64}, {"d", 64}, {"e", 1}},
            {{"b", 1}, {"s", 6}, {"t", 3}, {"d", 0}, {"e", 4}}});
  addShape("2", "1", "64", "t", "64", {{{"t", 1}}, {{"t", 300}}});
  addShape("2, 3", "13", "8", "130", "72", {});
  addShape("1", "150", "32", "17", "100", {});
  addShape("2", "6", "64", "4096", "64", {});
  addShape("2", "1", "3", "1", "1", {});
}

namespace {
/// An attention and its gradient, for queries [b, 3, s, depth] and keys [b, 3, t, depth].
struct Gradient {
  Builder &b;
  string rows = "s", columns = "t", depth = "16", width = "16";

  string matrix(const string &m, const string &n) const { return "b, 3, " + m + ", " + n; }
  Value turned(Value x) { return b.transposed(x, "0, 1, 3, 2"); }
  Value times(Value x, Value y) { return b.m.op("mul", {x, y}); }

  Value q = b.input(matrix(rows, depth)), k = b.input(matrix(columns, depth)),
        v = b.input(matrix(columns, width));
  /// Between the products, and on the way back.
  std::function<Value(Value)> logits = [this](Value x) { return b.scaled(x, 0.25); };
  std::function<Value(Value)> logitsBack = [this](Value x) { return b.scaled(x, 0.25); };
  std::function<Value(Value)> dropout = [](Value x) { return x; };
  bool turnsSums = false; // q^T x weights instead of weights^T x q

  /// weights^T x other.
  Value sum(Value weights, Value other, const string &n) {
    if (!turnsSums)
      return b.product(turned(weights), other, matrix(columns, n));
    return turned(b.product(turned(other), weights, matrix(n, columns)));
  }
  void build() {
    string scores = matrix(rows, columns);
    Value p = b.softmax(logits(b.product(q, turned(k), scores))), weights = dropout(p);
    Value o = b.product(weights, v, matrix(rows, width));
    Value d = times(o, b.input(matrix(rows, width)));
    Value dp = dropout(b.product(d, turned(v), scores));
    Value whole = b.fold("reduce_sum", times(p, dp));
    Value ds = logitsBack(times(p, b.with("sub", dp, whole)));
    b.output(o);
    b.output(sum(weights, d, width), 40);
    b.output(b.product(ds, k, matrix(rows, depth)), 40);
    b.output(sum(ds, q, depth), 40);
  }
};
} // namespace

static const std::map<string, int64_t> kBoth = {{"attention", 1}, {"attention_gradient", 1}};

static void addGradients(Cases &cases, const string &type) {
  auto addGradient = [&](const string &name, std::function<void(Gradient &)> change,
                         std::vector<Sizes> runs = kRuns) {
    add(
        cases, "gradient, " + name, type,
        [=](Builder &b) {
          Gradient gradient{b};
          change(gradient);
          gradient.build();
        },
        std::move(runs), kBoth);
  };
  auto addShape = [&](const string &rows, const string &columns, const string &depth,
                      const string &width, std::vector<Sizes> runs,
                      std::map<string, int64_t> groups = kBoth) {
    add(
        cases, "gradient, " + rows + " x " + depth + " x " + columns + " x " + width, type,
        [=](Builder &b) { Gradient{b, rows, columns, depth, width}.build(); }, std::move(runs),
        std::move(groups));
  };
  addGradient("plain", [](Gradient &g) {});
  addGradient("sums turned", [](Gradient &g) { g.turnsSums = true; });
  addGradient("causal", [](Gradient &g) {
    g.logits = [&g](Value x) { return g.b.causal(x, "s", "t"); };
    g.logitsBack = [&g](Value x) {
      string dims = "i64[s, t]";
      Value isSeen = g.b.m.op("greater_equal", {g.b.iota(dims, 0), g.b.iota(dims, 1)});
      Value zero = g.b.m.broadcastTo(g.b.m.scalar(g.b.type, 0), x);
      return g.b.m.op("select", {g.b.m.broadcastTo(isSeen, x), x, zero});
    };
  });
  addGradient("dropout", [](Gradient &g) {
    Value mask = g.b.input("b, 3, s, t", Fill::range(0, 2));
    g.dropout = [&g, mask](Value x) { return g.times(x, mask); };
  });
  addGradient("numbers of all kinds",
              [](Gradient &g) { g.q = g.b.input("b, 3, s, 16", Fill::any()); });
  addGradient("heads of one tensor", [](Gradient &g) {
    auto heads = [&](const string &rows) {
      Value x = g.b.unary("neg", g.b.input("b, " + rows + ", 48"));
      return g.b.transposed(g.b.reshape(x, "b, " + rows + ", 3, 16"), "0, 2, 1, 3");
    };
    g.q = heads("s"), g.k = heads("t"), g.v = heads("t");
  });
  addShape("s", "t", "40", "70", kRuns);
  addShape("s", "s", "s", "16",
           {{{"b", 2}, {"s", 24}}, {{"b", 1}, {"s", 1}}, {{"b", 1}, {"s", 0}}});
  addShape("150", "130", "64", "64", {{{"b", 1}}});
  addShape("13", "8", "1", "3", {{{"b", 2}}});
  addShape("1", "300", "8", "8", {{{"b", 1}}, {{"b", 0}}}, {}); // its transposes are views
}

void addAttention(Cases &cases) {
  for (const char *type : {"f32", "f64"}) {
    addGradients(cases, type);
    addMiddles(cases, type);
    addPlaces(cases, type);
    addVersions(cases, type);
    addEnds(cases, type);
    addAlone(cases, type);
    addOperands(cases, type);
    addShapes(cases, type);
  }
  for (const char *type : {"f16", "bf16"})
    add(cases, "narrow numbers", type, [](Builder &b) {
      Value q = b.input("b, 3, s, 16", Fill::range(-1, 1)), k = b.input("b, 3, 16, t"),
            v = b.input("b, 3, t, 16", Fill::range(-1, 1));
      Value p = b.softmax(b.scaled(b.product(q, k, "b, 3, s, t"), 0.25));
      b.output(b.product(p, v, "b, 3, s, 16"), 1);
    });
}

} // namespace heddle::ops
