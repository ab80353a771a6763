// depthwise: windows over each channel on its own, in every order of their loops: known and
// unknown sizes, borders wider than windows, rows that the L1 holds and rows that it does not.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {
using Pair = std::array<int64_t, 2>;

struct Layer {
  int64_t channels;
  Pair window, strides, low, high, dilations = {1, 1};

  string attributes() const {
    return "strides = " + list(strides) + ", dilations = " + list(dilations) +
           ", low = " + list(low) + ", high = " + list(high);
  }
  static string list(Pair numbers) {
    return "array<i64: " + std::to_string(numbers[0]) + ", " + std::to_string(numbers[1]) + ">";
  }
};

struct Image {
  string n = "n", h = "h", w = "w";
};
} // namespace

static const std::vector<Sizes> kRuns = {{{"n", 1}, {"h", 7}, {"w", 9}},
                                         {{"n", 2}, {"h", 4}, {"w", 5}},
                                         {{"n", 1}, {"h", 6}, {"w", 30}},
                                         {{"n", 0}, {"h", 6}, {"w", 6}},
                                         {{"n", 1}, {"h", 5}, {"w", 47}}};

static std::vector<Sizes> runsOf(const Image &image) {
  return image.w == "w" ? kRuns : std::vector<Sizes>();
}

static string typeOf(const string &element, const Layer &layer, const Image &image) {
  return element + "[" + image.n + ", " + std::to_string(layer.channels) + ", " + image.h + ", " +
         image.w + "]";
}

static string resultType(const string &element, const Layer &layer, const Image &image) {
  auto pixels = [&](const string &size, int64_t d) {
    int64_t reach = (layer.window[d] - 1) * layer.dilations[d] + 1;
    string added = std::to_string(layer.low[d] + layer.high[d] - reach);
    return "(" + size + " + " + added + ") floordiv " + std::to_string(layer.strides[d]) + " + 1";
  };
  return typeOf(element, layer, {image.n, pixels(image.h, 0), pixels(image.w, 1)});
}

static Value conv(Model &m, const Layer &layer, const Image &image, const string &element = "f32") {
  bool isFloat = element == "f32";
  Fill fill = isFloat ? Fill::range(-1, 1) : Fill::any();
  string channels = std::to_string(layer.channels);
  Value x = m.input(typeOf(element, layer, image), fill);
  Value w =
      m.weight((isFloat ? "f32[" : "i8[") + channels + ", 1, " + std::to_string(layer.window[0]) +
                   ", " + std::to_string(layer.window[1]) + "]",
               fill);
  return m.op("conv", {x, w}, layer.attributes() + ", groups = " + channels,
              resultType(isFloat ? "f32" : "i32", layer, image));
}

static void add(Cases &cases, const string &name, const Image &image, int64_t pixels,
                const std::function<void(Model &)> &build) {
  Case one{"depthwise/" + name, build, runsOf(image), {}, "conv_depthwise", {{"pixels", pixels}}};
  addBoth(cases, one);
}

static void addSizes(Cases &cases) {
  struct {
    const char *name;
    Layer layer;
    Image image;
    int64_t pixels = 8;
  } kinds[] = {
      // All channels of a row at once.
      {"7x7", {33, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {"2", "7", "7"}},
      {"9 wide", {17, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {"1", "4", "9"}, 4},
      {"43 wide, stride 2", {16, {3, 3}, {2, 2}, {1, 1}, {1, 1}}, {"1", "5", "43"}, 6},
      {"40 wide, no border", {5, {3, 3}, {1, 1}, {0, 0}, {0, 0}}, {"1", "5", "40"}},
      {"window wider than the image", {19, {5, 5}, {1, 1}, {2, 2}, {2, 2}}, {"1", "2", "2"}},
      {"border wider than the window", {8, {3, 3}, {1, 1}, {4, 5}, {0, 6}}, {"1", "5", "6"}},
      {"borders of 100 pixels", {3, {1, 3}, {1, 1}, {0, 100}, {0, 90}}, {"1", "2", "5"}, 2},
      {"strides wider than the window", {20, {2, 2}, {3, 4}, {0, 0}, {1, 3}}, {"2", "9", "14"}},
      {"8x8", {18, {8, 8}, {1, 1}, {3, 4}, {4, 3}}, {"1", "9", "21"}},
      {"unknown", {20, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {}},
      {"unknown 5x5, stride 2", {18, {5, 5}, {2, 2}, {2, 1}, {2, 3}}, {}},
      // Blocks of channels.
      {"blocks", {160, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {"1", "5", "31"}},
      {"blocks of a row that is one tile", {640, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {"2", "7", "7"}},
      {"blocks that share lines", {101, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {"2", "5", "37"}},
      {"blocks, stride 2", {224, {3, 3}, {2, 2}, {0, 1}, {1, 1}}, {"1", "9", "29"}},
      {"blocks 5x5", {96, {5, 5}, {1, 1}, {2, 2}, {2, 2}}, {"1", "6", "33"}},
      {"blocks, dilations", {96, {3, 3}, {1, 1}, {2, 0}, {2, 3}, {2, 3}}, {"1", "9", "36"}},
      {"blocks, uneven", {120, {5, 3}, {2, 1}, {1, 2}, {3, 0}, {1, 2}}, {"3", "7", "41"}, 6},
      {"blocks of a few rows", {416, {3, 1}, {1, 1}, {1, 0}, {1, 0}}, {"1", "5", "150"}},
      {"blocks of unknown images", {150, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {}},
      {"blocks of unknown images 5x5", {128, {5, 5}, {2, 1}, {2, 2}, {2, 2}}, {}},
      {"blocks of a known width", {160, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {"3", "6", "26"}},
  };
  for (auto &kind : kinds)
    add(cases, kind.name, kind.image, kind.pixels,
        [=](Model &m) { m.output(conv(m, kind.layer, kind.image), {1e-4, 1e-5}); });
}

static void addBytes(Cases &cases) {
  Layer narrow{20, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, wide{410, {3, 3}, {2, 1}, {1, 1}, {0, 1}};
  Layer blocks{256, {5, 5}, {1, 1}, {2, 2}, {2, 2}};
  for (const char *element : {"i8", "ui8"}) {
    string name = string(element) + " ";
    auto build = [=](Layer layer, Image image) {
      return [=](Model &m) { m.output(conv(m, layer, image, element)); };
    };
    Image seven{"2", "7", "7"}, thirty{"1", "5", "31"};
    add(cases, name + "7x7", seven, 8, build(narrow, seven));
    add(cases, name + "unknown", {}, 8, build(narrow, {}));
    add(cases, name + "blocks that share lines", thirty, 8, build(wide, thirty));
    add(cases, name + "blocks 5x5", thirty, 8, build(blocks, thirty));
  }
}

static void addEpilogues(Cases &cases) {
  Layer layer{112, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (Image image : {Image{"2", "5", "41"}, Image{}}) {
    string name = image.w == "w" ? " unknown" : "";
    add(cases, "bias and clip" + name, image, 8, [=](Model &m) {
      Value y = conv(m, layer, image);
      y = m.op("add", {y, m.broadcastTo(m.constant("f32[1, 112, 1, 1]"), y)});
      y = m.op("max", {y, m.broadcastTo(m.scalar("f32", 0), y)});
      m.output(m.op("min", {y, m.broadcastTo(m.scalar("f32", 6), y)}), {1e-4, 1e-5});
    });
    add(cases, "residual" + name, image, 8, [=](Model &m) {
      Value y = conv(m, layer, image);
      m.output(m.op("add", {y, m.input(resultType("f32", layer, image))}), {1e-4, 1e-5});
    });
  }
}

/// Infinities, and NaN where two of them meet, are in the pixels whose windows have them, and in no
/// others.
static void addSpecials(Cases &cases) {
  Layer layer{112, {3, 3}, {1, 1}, {1, 1}, {1, 1}};
  for (Image image : {Image{"1", "5", "41"}, Image{"1", "7", "7"}, Image{}})
    add(cases, "specials, width " + image.w, image, 8, [=](Model &m) {
      Value zeros = m.op("ceil", {m.input(typeOf("f32", layer, image), Fill::range(-0.03, 1))});
      Value x = m.op("div", {m.input(typeOf("f32", layer, image), Fill::range(-1, 1)), zeros});
      Value w = m.constant("f32[112, 1, 3, 3]", Fill::range(-1, 1));
      m.output(m.op("conv", {x, w}, layer.attributes() + ", groups = 112",
                    resultType("f32", layer, image)),
               {1e-4, 1e-5});
    });
}

/// Images of one dimension: signals.
static void addLines(Cases &cases) {
  struct {
    const char *name;
    int64_t channels, window, stride, dilation, low, high;
    const char *width;
  } kinds[] = {
      {"short", 33, 3, 1, 1, 1, 1, "5"},
      {"of 31 taps", 20, 31, 1, 1, 15, 15, "150"},
      {"unknown", 40, 5, 1, 1, 2, 2, "w"},
      {"stride and dilation", 17, 4, 3, 2, 5, 0, "w"},
      {"causal", 96, 4, 1, 1, 3, 0, "200"},
      {"without border", 16, 9, 2, 1, 0, 0, "331"},
      {"of 31 taps, unknown", 70, 31, 1, 1, 30, 0, "w"},
  };
  std::vector<Sizes> runs = {{{"n", 1}, {"w", 130}}, {{"n", 3}, {"w", 7}}, {{"n", 0}, {"w", 64}}};
  for (auto &kind : kinds)
    for (const char *element : {"f32", "ui8"}) {
      string sum = element[0] == 'f' ? "f32" : "i32", channels = std::to_string(kind.channels);
      auto list = [](int64_t number) { return "array<i64: " + std::to_string(number) + ">"; };
      string added = std::to_string(kind.low + kind.high - (kind.window - 1) * kind.dilation - 1);
      string size = string(kind.width) == "w" ? "w" : kind.width;
      string result = "[n, " + channels + ", (" + size + " + " + added + ") floordiv " +
                      std::to_string(kind.stride) + " + 1]";
      string attributes = "strides = " + list(kind.stride) +
                          ", dilations = " + list(kind.dilation) + ", low = " + list(kind.low) +
                          ", high = " + list(kind.high);
      string x = string(element) + "[n, " + channels + ", " + size + "]";
      string w =
          (sum == "f32" ? "f32[" : "i8[") + channels + ", 1, " + std::to_string(kind.window) + "]";
      Fill fill = sum == "f32" ? Fill::range(-1, 1) : Fill::any();
      addBoth(cases, {string("depthwise/line ") + kind.name + " " + element,
                      [=](Model &m) {
                        Value y = m.op("conv", {m.input(x, fill), m.weight(w, fill)},
                                       attributes + ", groups = " + channels, sum + result);
                        m.output(y, sum == "f32" ? Tolerance{1e-4, 1e-5} : Tolerance{});
                        if (sum == "f32")
                          m.output(m.op("tanh", {y}), {1e-4, 1e-5});
                      },
                      runs});
    }
}

static void addPools(Cases &cases) {
  struct {
    const char *name;
    Layer layer;
    Image image;
  } kinds[] = {
      {"7x7", {33, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {"2", "7", "7"}},
      {"blocks", {144, {3, 3}, {2, 2}, {1, 1}, {1, 1}}, {"1", "9", "31"}},
      {"blocks 7x7", {70, {7, 7}, {1, 1}, {3, 3}, {3, 3}}, {"2", "5", "33"}},
      {"blocks of unknown images", {150, {3, 3}, {1, 2}, {1, 1}, {1, 0}}, {}},
  };
  for (auto &kind : kinds)
    for (const char *pool : {"max", "average"})
      cases.push_back({string("depthwise/pool ") + pool + " " + kind.name,
                       [=](Model &m) {
                         const Layer &layer = kind.layer;
                         Value x = m.input(typeOf("f32", layer, kind.image), Fill::range(-1, 1));
                         string attributes = string("kind = \"") + pool +
                                             "\", window = " + Layer::list(layer.window) + ", " +
                                             layer.attributes();
                         for (const char *counts : {"", ", count_padding = true"})
                           m.output(m.op("pool", {x}, attributes + counts,
                                         resultType("f32", layer, kind.image)),
                                    {1e-4, 1e-5});
                       },
                       runsOf(kind.image)});
}

void addDepthwise(Cases &cases) {
  addSizes(cases);
  addBytes(cases);
  addEpilogues(cases);
  addSpecials(cases);
  addLines(cases);
  addPools(cases);
}

} // namespace heddle::ops
