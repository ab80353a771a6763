// elementwise: ops that compute each element from the elements at the same place, and casts.

#include "test/ops/case.h"

namespace heddle::ops {

using llvm::Twine;
using std::string;

static const char *const kFloats[] = {"f32", "f64", "f16", "bf16"};
static const char *const kIntegers[] = {"i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"};

/// Static shapes, then one whose sizes the run decides.
struct Shape {
  const char *dims;
  std::vector<Sizes> runs;
};
static const Shape kShapes[] = {
    {"[]", {}},
    {"[0, 5]", {}},
    {"[7, 33]", {}},
    {"[n, m]", {{{"n", 3}, {"m", 17}}, {{"n", 1}, {"m", 49}}, {{"n", 0}, {"m", 4}}}},
};

static void addShaped(Cases &cases, const string &name,
                      const std::function<void(Model &, const string &)> &build) {
  for (const Shape &shape : kShapes) {
    string dims = shape.dims;
    cases.push_back({name + " " + dims, [=](Model &m) { build(m, dims); }, shape.runs});
  }
}

static bool isExact(llvm::StringRef op) {
  return !llvm::StringSwitch<bool>(op)
              .Cases("exp", "log", "log1p", "expm1", "erf", "sigmoid", "pow", true)
              .Cases("sin", "cos", "tan", "asin", "acos", "atan", true)
              .Cases("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", true)
              .Default(false);
}

static void outputOf(Model &m, llvm::StringRef op, Value value) {
  isExact(op) ? m.output(value, Tolerance::exact()) : m.output(value);
}

static void addFloats(Cases &cases, const string &type) {
  static const char *const kUnary[] = {"abs",  "neg",   "sign",  "sqrt",   "floor",
                                       "ceil", "round", "trunc", "is_nan", "is_inf"};
  static const char *const kCurves[] = {"exp",  "log",  "log1p", "expm1", "erf",   "sigmoid",
                                        "sin",  "cos",  "tan",   "asin",  "acos",  "atan",
                                        "sinh", "cosh", "tanh",  "asinh", "acosh", "atanh"};
  static const char *const kBinary[] = {"add",  "sub",        "mul",     "div",
                                        "max",  "min",        "equal",   "not_equal",
                                        "less", "less_equal", "greater", "greater_equal"};
  addShaped(cases, "elementwise/unary " + type, [=](Model &m, const string &dims) {
    Value x = m.input(type + dims, Fill::any());
    for (const char *op : kUnary)
      outputOf(m, op, m.op(op, {x}));
    outputOf(m, "is_inf", m.op("is_inf", {x}, "negative = false"));
    outputOf(m, "is_inf", m.op("is_inf", {x}, "positive = false"));
  });
  addShaped(cases, "elementwise/binary " + type, [=](Model &m, const string &dims) {
    Value x = m.input(type + dims, Fill::any()), y = m.input(type + dims, Fill::any());
    for (const char *op : kBinary)
      outputOf(m, op, m.op(op, {x, y}));
    Value less = m.op("less", {x, y});
    m.output(m.op("select", {less, x, y}), Tolerance::exact());
  });
  for (const char *op : kCurves) {
    const Shape &shape = kShapes[3];
    cases.push_back({string("elementwise/") + op + " " + type,
                     [=](Model &m) {
                       Value x = m.input(type + "[n, m]", Fill::any());
                       Value wide = m.input(type + "[n, 64]", Fill::range(-30, 30));
                       m.output(m.op(op, {x}));
                       m.output(m.op(op, {wide}));
                     },
                     shape.runs});
  }
  cases.push_back({"elementwise/pow mod " + type,
                   [=](Model &m) {
                     Value x = m.input(type + "[n, m]", Fill::any());
                     Value y = m.input(type + "[n, m]", Fill::any());
                     m.output(m.op("pow", {x, y}));
                     m.output(m.op("mod", {x, y}));
                     m.output(m.op("mod", {x, y}, "fmod = true"));
                   },
                   kShapes[3].runs});
}

static void addIntegers(Cases &cases, const string &type) {
  static const char *const kUnary[] = {"abs",  "neg",   "sign",  "floor",
                                       "ceil", "round", "trunc", "bit_not"};
  static const char *const kBinary[] = {
      "add",     "sub",   "mul",       "max",  "min",        "bit_and", "bit_or",
      "bit_xor", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"};
  addShaped(cases, "elementwise/integers " + type, [=](Model &m, const string &dims) {
    Value x = m.input(type + dims, Fill::any()), y = m.input(type + dims, Fill::any());
    for (const char *op : kUnary)
      m.output(m.op(op, {x}));
    for (const char *op : kBinary)
      m.output(m.op(op, {x, y}));
    m.output(m.op("select", {m.op("less", {x, y}), x, y}));
  });
  addShaped(cases, "elementwise/divisions " + type, [=](Model &m, const string &dims) {
    Value x = m.input(type + dims, Fill::any());
    Value y = m.input(type + dims, Fill::range(1, 9));
    Value bits = m.input(type + dims, Fill::range(0, 70));
    Value exponent = m.input(type + dims, Fill::range(0, 6));
    Value minus = m.op("neg", {y});
    for (Value divisor : {y, minus}) {
      m.output(m.op("div", {x, divisor}));
      m.output(m.op("mod", {x, divisor}));
      m.output(m.op("mod", {x, divisor}, "fmod = true"));
    }
    m.output(m.op("shift_left", {x, bits}));
    m.output(m.op("shift_right", {x, bits}));
    m.output(m.op("pow", {x, exponent}));
  });
}

/// 256 bytes, all different, as an attribute.
static string tableOf(const string &element) {
  string bytes;
  for (int i = 0; i < 256; ++i)
    bytes += static_cast<char>(i * 37 + 11); // 37 is odd
  return "table = dense<\"0x" + llvm::toHex(bytes) + "\"> : tensor<256x" + element + ">";
}

/// cast(clamp(round(x / step))) to ui8.
static Value quantised(Model &m, Value x, double step) {
  auto with = [&](const char *op, double number) {
    return x = m.op(op, {x, m.broadcastTo(m.scalar("f32", number), x)});
  };
  with("div", step);
  x = m.op("round", {x});
  with("max", 0);
  with("min", 255);
  return m.op("cast", {x}, "", "ui8[n, m]");
}

static void addLookups(Cases &cases) {
  for (const char *from : {"i8", "ui8"})
    for (const char *to : {"i8", "ui8"})
      addShaped(cases, string("lookup/") + from + " " + to, [=](Model &m, const string &dims) {
        m.output(m.op("lookup", {m.input(from + dims, Fill::any())}, tableOf(to), to + dims));
      });
  // x * sigmoid(x) in 8 bits, after a product and alone, becomes a lookup.
  for (bool isProduct : {true, false})
    cases.push_back(
        {string("lookup/swish ") + (isProduct ? "of a product" : "alone"),
         [=](Model &m) {
           Value x = m.input("f32[n, m]", Fill::range(-4, 4));
           if (isProduct)
             x = m.op(
                 "cast",
                 {m.op("matmul",
                       {m.op("cast", {m.input("ui8[n, 24]", Fill::any())}, "", "i32[n, 24]"),
                        m.op("cast", {m.input("i8[24, m]", Fill::range(-9, 9))}, "", "i32[24, m]")},
                       "", "i32[n, m]")},
                 "", "f32[n, m]");
           Value stored = quantised(m, x, isProduct ? 50 : 0.03);
           Value wide = m.op("cast", {stored}, "", "f32[n, m]");
           wide = m.op("mul", {wide, m.broadcastTo(m.scalar("f32", 0.03), wide)});
           Value gate = quantised(m, m.op("sigmoid", {wide}), 0.004);
           Value factor = m.op("cast", {gate}, "", "f32[n, m]");
           m.output(quantised(m, m.op("mul", {wide, factor}), 7.1));
         },
         {{{"n", 5}, {"m", 37}}, {{"n", 1}, {"m", 64}}, {{"n", 0}, {"m", 4}}}});
}

void addElementwise(Cases &cases) {
  addLookups(cases);
  for (const char *type : kFloats)
    addFloats(cases, type);
  for (const char *type : kIntegers)
    addIntegers(cases, type);
  addShaped(cases, "elementwise/truth i1", [](Model &m, const string &dims) {
    Value x = m.input("i1" + dims), y = m.input("i1" + dims), z = m.input("i1" + dims);
    for (const char *op : {"not", "bit_not"})
      m.output(m.op(op, {x}));
    for (const char *op :
         {"and", "or", "xor", "equal", "not_equal", "less", "greater_equal", "max"})
      m.output(m.op(op, {x, y}));
    m.output(m.op("select", {x, y, z}));
  });
}

void addCasts(Cases &cases) {
  static const char *const kAll[] = {"f32", "f64", "f16",  "bf16", "i8",   "i16", "i32",
                                     "i64", "ui8", "ui16", "ui32", "ui64", "i1"};
  for (const char *from : kAll) {
    bool isFloat = llvm::StringRef(from).contains('f');
    cases.push_back(
        {string("cast/from ") + from,
         [=](Model &m) {
           Value x =
               m.input(string(from) + "[n, 17]", isFloat ? Fill::range(-100, 100) : Fill::any());
           Value positive = m.input(string(from) + "[n, 17]", Fill::range(0, 100));
           for (const char *to : kAll) {
             bool needsSign = isFloat && to[0] == 'u';
             m.output(m.op("cast", {needsSign ? positive : x}, "", string(to) + "[n, 17]"));
           }
         },
         {{{"n", 5}}, {{"n", 0}}}});
    if (isFloat)
      cases.push_back({string("cast/specials ") + from,
                       [=](Model &m) {
                         Value x = m.input(string(from) + "[n, 17]", Fill::any());
                         for (const char *to : kAll)
                           m.output(m.op("cast", {x}, "", string(to) + "[n, 17]"),
                                    Tolerance::exact());
                       },
                       {{{"n", 5}}}});
    if (isFloat)
      cases.push_back({string("cast/wraps ") + from,
                       [=](Model &m) {
                         Value x = m.input(string(from) + "[n, 17]", Fill::range(-60000, 60000));
                         for (const char *to :
                              {"i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"})
                           m.output(m.op("cast", {x}, "", string(to) + "[n, 17]"));
                       },
                       {{{"n", 5}}}});
  }
  for (const char *narrow : {"f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ"})
    for (const char *wide : {"f32", "f64", "f16", "bf16"})
      cases.push_back({string("cast/narrow ") + wide + " " + narrow,
                       [=](Model &m) {
                         string dims = "[n, 17]";
                         Value x = m.input(wide + dims, Fill::any());
                         Value y = m.input(wide + dims, Fill::range(-500, 500));
                         for (Value value : {x, y})
                           for (const char *rest : {"saturate = true", "saturate = false"}) {
                             Value cast = m.op("cast", {value}, rest, narrow + dims);
                             m.output(cast, Tolerance::exact());
                             for (const char *back : {wide, "i8", "i32", "ui32", "i64", "ui64"})
                               m.output(m.op("cast", {cast}, "", back + dims), Tolerance::exact());
                           }
                       },
                       {{{"n", 5}}}});
  for (const char *narrow : {"i4", "ui4"})
    cases.push_back({string("cast/narrow ") + narrow,
                     [=](Model &m) {
                       Value x = m.input("i32[n, 17]", Fill::range(-20, 20));
                       Value cast = m.op("cast", {x}, "", string(narrow) + "[n, 17]");
                       for (const char *wide : {"i32", "i8", "ui8", "f32", "i1"})
                         m.output(m.op("cast", {cast}, "", string(wide) + "[n, 17]"));
                     },
                     {{{"n", 5}}}});
  static const char *const kPairs[][2] = {{"f32", "i32"},   {"f64", "i64"}, {"f16", "i16"},
                                          {"bf16", "ui16"}, {"i8", "ui8"},  {"ui32", "f32"}};
  for (auto [from, to] : kPairs)
    cases.push_back({string("cast/bits ") + from + " " + to,
                     [from = from, to = to](Model &m) {
                       Value x = m.input(string(from) + "[3, 7]");
                       m.output(m.op("bitcast", {x}, "", string(to) + "[3, 7]"),
                                Tolerance::exact());
                     },
                     {}});
}

} // namespace heddle::ops
