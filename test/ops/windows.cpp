// windows: convolutions, their transposes, and pools.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {
struct Window {
  const char *name, *x, *w, *result; // sizes
  const char *attributes;
};
} // namespace

static const char kOne[] = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = "
                           "array<i64: 0, 0>, high = array<i64: 0, 0>";
static const char kSame[] = "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = "
                            "array<i64: 1, 1>, high = array<i64: 1, 1>";
static const char kTwo[] = "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = "
                           "array<i64: 1, 1>, high = array<i64: 1, 1>";
static const char kWide[] = "strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, low = "
                            "array<i64: 2, 0>, high = array<i64: 1, 3>";
// Most taps lie in the border.
static const char kFar[] = "strides = array<i64: 1, 1>, dilations = array<i64: 6, 12>, low = "
                           "array<i64: 6, 12>, high = array<i64: 6, 12>";
static const char kFarTwo[] = "strides = array<i64: 2, 3>, dilations = array<i64: 5, 4>, low = "
                              "array<i64: 5, 8>, high = array<i64: 2, 1>";
static const char kFarGroups[] =
    "groups = 3, strides = array<i64: 1, 1>, dilations = array<i64: 4, 8>, low = "
    "array<i64: 4, 8>, high = array<i64: 4, 8>";
static const char kLine[] =
    "strides = array<i64: 1>, dilations = array<i64: 1>, low = array<i64: 2>, high = array<i64: 1>";
static const char kCube[] = "strides = array<i64: 2, 1, 1>, dilations = array<i64: 1, 1, 1>, low = "
                            "array<i64: 1, 0, 1>, high = array<i64: 0, 0, 1>";

static void addConvolutions(Cases &cases) {
  static const Window kWindows[] = {
      {"1x1", "[2, 7, 5, 9]", "[17, 7, 1, 1]", "[2, 17, 5, 9]", kOne},
      {"3x3", "[1, 3, 15, 17]", "[16, 3, 3, 3]", "[1, 16, 15, 17]", kSame},
      {"3x3 wide", "[1, 33, 7, 7]", "[49, 33, 3, 3]", "[1, 49, 7, 7]", kSame},
      {"stride 2", "[1, 16, 15, 9]", "[33, 16, 3, 3]", "[1, 33, 8, 5]", kTwo},
      {"stride 2 1x1", "[1, 16, 15, 9]", "[16, 16, 1, 1]", "[1, 16, 9, 6]", kTwo},
      {"dilated", "[2, 5, 9, 11]", "[7, 5, 3, 3]", "[2, 7, 8, 10]", kWide},
      {"groups", "[1, 12, 7, 9]", "[18, 4, 3, 3]", "[1, 18, 7, 9]", "groups = 3"},
      {"depthwise", "[2, 33, 7, 9]", "[33, 1, 3, 3]", "[2, 33, 7, 9]", "groups = 33"},
      {"depthwise twice", "[1, 5, 7, 9]", "[10, 1, 3, 3]", "[1, 10, 7, 9]", "groups = 5"},
      {"one place", "[1, 100, 1, 1]", "[15, 100, 1, 1]", "[1, 15, 1, 1]", kOne},
      {"line", "[2, 7, 33]", "[16, 7, 5]", "[2, 16, 32]", kLine},
      {"cube", "[1, 3, 5, 6, 7]", "[8, 3, 2, 3, 3]", "[1, 8, 3, 4, 7]", kCube},
      {"empty batch", "[0, 3, 5, 5]", "[4, 3, 3, 3]", "[0, 4, 5, 5]", kSame},
      {"dynamic", "[n, 3, h, w]", "[17, 3, 3, 3]", "[n, 17, h, w]", kSame},
      {"dynamic 1x1", "[n, 16, h, w]", "[17, 16, 1, 1]", "[n, 17, h, w]", kOne},
      {"dynamic depthwise", "[n, 20, h, w]", "[20, 1, 3, 3]", "[n, 20, h, w]", "groups = 20"},
      {"dynamic stride 2", "[n, 8, h, w]", "[7, 8, 3, 3]",
       "[n, 7, (h + 1) floordiv 2, (w + 1) floordiv 2]", kTwo},
      {"far", "[1, 17, 9, 16]", "[40, 17, 3, 3]", "[1, 40, 9, 16]", kFar},
      {"far stride", "[2, 5, 11, 13]", "[7, 5, 3, 3]", "[2, 7, 4, 5]", kFarTwo},
      {"far groups", "[1, 12, 5, 10]", "[18, 4, 3, 3]", "[1, 18, 5, 10]", kFarGroups},
      {"dynamic far", "[n, 3, h, w]", "[17, 3, 3, 3]", "[n, 17, h, w]", kFar},
  };
  std::vector<Sizes> runs = {{{"n", 1}, {"h", 7}, {"w", 9}}, {{"n", 3}, {"h", 16}, {"w", 1}}};
  auto add = [&](const Window &window, const string &type, bool isWeight) {
    string attributes = window.attributes;
    if (attributes[0] == 'g' && window.attributes != kFarGroups)
      attributes = string(kSame) + ", " + attributes;
    string sum = type == "i8" ? "i32" : type;
    Fill fill = type == "i8" ? Fill::any() : Fill();
    bool isDynamic = string(window.name).starts_with("dynamic");
    cases.push_back({string("conv/") + window.name + " " + type + (isWeight ? " weight" : ""),
                     [=](Model &m) {
                       Value x = m.input(type + window.x, fill);
                       Value w = isWeight ? m.constant(type + window.w, fill)
                                          : m.input(type + window.w, fill);
                       m.output(m.op("conv", {x, w}, attributes, sum + window.result),
                                Tolerance::close(m.element(sum), 40));
                     },
                     isDynamic ? runs : std::vector<Sizes>()});
    // Transformed tiles, which round otherwise, have cases of their own (winograd.cpp).
    if (window.name == string("3x3 wide"))
      cases.back().card = "conv";
  };
  for (const Window &window : kWindows) {
    add(window, "f32", true);
    add(window, "f32", false);
  }
  for (int i : {0, 3, 6, 7, 13, 17, 18, 19, 20})
    for (const char *type : {"f64", "f16", "bf16", "i8"})
      add(kWindows[i], type, true);
}

static void addTransposes(Cases &cases) {
  static const Window kWindows[] = {
      {"stride 2", "[2, 7, 5, 6]", "[7, 9, 3, 3]", "[2, 9, 10, 12]",
       "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, "
       "high = array<i64: 1, 1>, output_padding = array<i64: 1, 1>"},
      {"2x2", "[1, 16, 5, 7]", "[16, 17, 2, 2]", "[1, 17, 10, 14]",
       "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, "
       "high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>"},
      {"groups", "[1, 6, 5, 4]", "[6, 2, 3, 3]", "[1, 6, 7, 6]",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, "
       "high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, groups = 3"},
      {"dilated line", "[1, 3, 9]", "[3, 4, 3]", "[1, 4, 27]",
       "strides = array<i64: 3>, dilations = array<i64: 2>, low = array<i64: 2>, "
       "high = array<i64: 0>, output_padding = array<i64: 0>"},
      {"dynamic", "[n, 3, h]", "[3, 4, 3]", "[n, 4, 2*h]",
       "strides = array<i64: 2>, dilations = array<i64: 1>, low = array<i64: 1>, "
       "high = array<i64: 0>, output_padding = array<i64: 0>"},
      {"3x3", "[2, 17, 9, 7]", "[17, 19, 3, 3]", "[2, 19, 9, 7]",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, "
       "high = array<i64: 1, 1>, output_padding = array<i64: 0, 0>"},
      {"1x1", "[2, 17, 9, 7]", "[17, 19, 1, 1]", "[2, 19, 9, 7]",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, "
       "high = array<i64: 0, 0>, output_padding = array<i64: 0, 0>"},
      {"1x1 stride 2", "[2, 17, 5, 4]", "[17, 19, 1, 1]", "[2, 19, 9, 8]",
       "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, "
       "high = array<i64: 0, 0>, output_padding = array<i64: 0, 1>"},
      {"lopsided stride", "[2, 6, 5, 6]", "[6, 9, 4, 3]", "[2, 9, 14, 11]",
       "strides = array<i64: 3, 2>, dilations = array<i64: 1, 1>, low = array<i64: 2, 0>, "
       "high = array<i64: 1, 2>, output_padding = array<i64: 1, 0>"},
      {"cropped far", "[1, 6, 5, 6]", "[6, 9, 2, 1]", "[1, 9, 3, 4]",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 2, 1>, "
       "high = array<i64: 1, 1>, output_padding = array<i64: 0, 0>"},
      {"dilated", "[1, 6, 5, 6]", "[6, 9, 3, 3]", "[1, 9, 6, 8]",
       "strides = array<i64: 1, 1>, dilations = array<i64: 2, 3>, low = array<i64: 1, 2>, "
       "high = array<i64: 2, 2>, output_padding = array<i64: 0, 0>"},
      {"groups stride 2", "[2, 12, 5, 6]", "[12, 5, 3, 3]", "[2, 15, 10, 11]",
       "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, "
       "high = array<i64: 1, 1>, output_padding = array<i64: 1, 0>, groups = 3"},
      {"depthwise stride 2", "[2, 20, 5, 6]", "[20, 1, 3, 3]", "[2, 20, 9, 12]",
       "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, "
       "high = array<i64: 1, 1>, output_padding = array<i64: 0, 1>, groups = 20"},
      {"depthwise", "[2, 20, 5, 6]", "[20, 1, 3, 3]", "[2, 20, 5, 6]",
       "strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, "
       "high = array<i64: 1, 1>, output_padding = array<i64: 0, 0>, groups = 20"},
      {"cube", "[1, 5, 3, 4, 5]", "[5, 4, 2, 3, 3]", "[1, 4, 6, 4, 10]",
       "strides = array<i64: 2, 1, 2>, dilations = array<i64: 1, 1, 1>, low = array<i64: 0, 1, 1>, "
       "high = array<i64: 0, 1, 1>, output_padding = array<i64: 0, 0, 1>"},
      {"dynamic 3x3", "[n, 7, h, 6]", "[7, 9, 3, 3]", "[n, 9, 2*h, 12]",
       "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, "
       "high = array<i64: 1, 1>, output_padding = array<i64: 1, 1>"},
  };
  for (const Window &window : kWindows)
    for (const char *type : {"f32", "f64", "f16"})
      for (bool isWeight : {true, false})
        cases.push_back(
            {string("conv transpose/") + window.name + " " + type + (isWeight ? " weight" : ""),
             [=](Model &m) {
               Value x = m.input(string(type) + window.x);
               Value w = isWeight ? m.constant(string(type) + window.w)
                                  : m.input(string(type) + window.w);
               m.output(
                   m.op("conv_transpose", {x, w}, window.attributes, string(type) + window.result),
                   Tolerance::close(m.element(type), 40));
             },
             string(window.name).starts_with("dynamic") ? std::vector<Sizes>{{{"n", 1}, {"h", 7}},
                                                                             {{"n", 3}, {"h", 16}},
                                                                             {{"n", 0}, {"h", 2}}}
                                                        : std::vector<Sizes>()});
}

static void addPools(Cases &cases) {
  static const Window kWindows[] = {
      {"3x3", "[1, 17, 9, 7]", "3, 3", "[1, 17, 9, 7]", kSame},
      {"stride 2", "[2, 16, 9, 7]", "3, 3", "[2, 16, 5, 4]", kTwo},
      {"2x2", "[2, 3, 9, 7]", "2, 2", "[2, 3, 8, 6]", kOne},
      {"dilated", "[2, 3, 9, 11]", "3, 3", "[2, 3, 8, 10]", kWide},
      {"whole", "[2, 33, 7, 7]", "7, 7", "[2, 33, 1, 1]", kOne},
      {"ceil", "[1, 5, 8, 6]", "2, 2", "[1, 5, 5, 4]",
       "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 1, 1>, "
       "high = array<i64: 0, 0>, ceil_mode = true"},
      {"missed", "[1, 5, 1, 1]", "2, 2", "[1, 5, 1, 1]",
       "strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>, low = array<i64: 1, 1>, "
       "high = array<i64: 1, 1>"},
      {"overhanging", "[2, 3, 1, 5]", "2, 2", "[2, 3, 1, 2]",
       "strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, low = array<i64: 0, 0>, "
       "high = array<i64: 0, 0>, ceil_mode = true"},
      {"line", "[2, 7, 33]", "4", "[2, 7, 33]", kLine},
      {"cube", "[1, 3, 5, 6, 7]", "2, 3, 3", "[1, 3, 3, 4, 7]", kCube},
      {"dynamic", "[n, 20, h, w]", "3, 3", "[n, 20, (h + 1) floordiv 2, (w + 1) floordiv 2]", kTwo},
  };
  for (const Window &window : kWindows)
    for (const char *type : {"f32", "f64", "f16", "i8", "ui8"})
      for (const char *kind : {"max", "average"}) {
        bool isFloat = type[0] == 'f';
        if (!isFloat && string(kind) == "average")
          continue;
        cases.push_back(
            {string("pool/") + kind + " " + window.name + " " + type,
             [=](Model &m) {
               Value x =
                   m.input(string(type) + window.x, string(kind) == "max" ? Fill::any() : Fill());
               string attributes = string("kind = \"") + kind +
                                   "\", window = array<i64: " + window.w + ">, " +
                                   window.attributes;
               m.output(m.op("pool", {x}, attributes, string(type) + window.result));
               if (string(kind) == "average")
                 m.output(m.op("pool", {x}, attributes + ", count_padding = true",
                               string(type) + window.result));
             },
             window.name == string("dynamic") ? std::vector<Sizes>{{{"n", 1}, {"h", 7}, {"w", 9}},
                                                                   {{"n", 3}, {"h", 16}, {"w", 1}}}
                                              : std::vector<Sizes>()});
      }
  // Values of a row are read once for all lanes, of rows inside alone.
  cases.push_back({"pool/of rows",
                   [](Model &m) {
                     Value x = m.input("f32[n, 2, 9, 40]"), row = m.input("f32[n, 2, 9, 1]");
                     Value y = m.op("add", {x, m.broadcastTo(row, x)});
                     m.output(m.op("pool", {y},
                                   string("kind = \"max\", window = array<i64: 3, 3>, ") + kSame,
                                   "f32[n, 2, 9, 40]"));
                   },
                   {{{"n", 1}}, {{"n", 2}}}});
}

void addWindows(Cases &cases) {
  addConvolutions(cases);
  addTransposes(cases);
  addPools(cases);
}

} // namespace heddle::ops
