// gradients: what convolutions and pools become on the way back.

#include "test/ops/case.h"

namespace heddle::ops {

using std::string;

namespace {
/// A convolution of `groups` with the filters whose gradient is asked for. Sizes of space are those
/// of the image; a row of numbers each, one for each of its dimensions.
struct Layer {
  const char *name;
  string channels, filters, perGroup; // the last: channels of a group
  std::vector<string> image;
  std::vector<int64_t> window, strides, low, high, dilations;
  int64_t groups = 1;
};
} // namespace

static const std::vector<Sizes> kRuns = {{{"n", 1}, {"h", 7}, {"w", 9}},
                                         {{"n", 3}, {"h", 4}, {"w", 5}},
                                         {{"n", 2}, {"h", 3}, {"w", 300}},
                                         {{"n", 0}, {"h", 6}, {"w", 6}},
                                         {{"n", 12}, {"h", 14}, {"w", 15}}};

static string list(const std::vector<int64_t> &numbers) {
  string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "array<i64: " + text + ">";
}

static string typeOf(const string &element, std::vector<string> first,
                     const std::vector<string> &rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  string text;
  for (const string &size : first)
    text += (text.empty() ? "" : ", ") + size;
  return element + "[" + text + "]";
}

/// Symbols for the sizes of what the convolution gives.
static std::vector<string> positionsOf(const Layer &layer) {
  std::vector<string> sizes;
  for (size_t d = 0; d < layer.image.size(); ++d)
    sizes.push_back("p" + std::to_string(d));
  return sizes;
}

/// The runs with the numbers of these.
static std::vector<Sizes> runsOf(const Layer &layer) {
  std::vector<Sizes> runs = kRuns;
  for (Sizes &run : runs)
    for (size_t d = 0; d < layer.image.size(); ++d) {
      auto symbol = run.find(layer.image[d]);
      int64_t size = symbol == run.end() ? std::stoll(layer.image[d]) : symbol->second;
      int64_t reach = (layer.window[d] - 1) * layer.dilations[d] + 1;
      int64_t room = size + layer.low[d] + layer.high[d] - reach;
      run["p" + std::to_string(d)] = room < 0 ? 0 : room / layer.strides[d] + 1;
    }
  return runs;
}

static Value gradient(Model &m, const Layer &layer, Value x, Value dy, const string &element) {
  string attributes = "strides = " + list(layer.strides) +
                      ", dilations = " + list(layer.dilations) + ", low = " + list(layer.low) +
                      ", high = " + list(layer.high) + ", groups = " + std::to_string(layer.groups);
  std::vector<string> window;
  for (int64_t size : layer.window)
    window.push_back(std::to_string(size));
  return m.op("conv_filter_gradient", {x, dy}, attributes,
              typeOf(element, {layer.filters, layer.perGroup}, window));
}

static const Layer kLayers[] = {
    {"1x1", "16", "24", "16", {"h", "w"}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {"1x1 odd", "7", "5", "7", {"h", "w"}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {"1x1 stride", "17", "33", "17", {"h", "w"}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}},
    {"1x1 border", "5", "6", "5", {"h", "w"}, {1, 1}, {1, 1}, {1, 0}, {0, 1}, {1, 1}},
    {"3x3", "19", "21", "19", {"h", "w"}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"3x3 wide", "40", "100", "40", {"h", "w"}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"3x3 stride", "16", "32", "16", {"h", "w"}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},
    {"lopsided", "6", "9", "6", {"h", "w"}, {3, 2}, {2, 1}, {2, 0}, {0, 3}, {1, 1}},
    {"dilated", "4", "8", "4", {"h", "w"}, {3, 3}, {1, 1}, {4, 3}, {2, 3}, {2, 3}},
    {"far", "3", "5", "3", {"9", "16"}, {3, 3}, {2, 3}, {5, 8}, {2, 1}, {5, 4}},
    {"7x7", "3", "64", "3", {"h", "w"}, {7, 7}, {2, 2}, {3, 3}, {3, 3}, {1, 1}},
    {"groups", "12", "18", "4", {"h", "w"}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 3},
    {"many groups", "64", "64", "2", {"h", "w"}, {3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}, 32},
    {"one channel", "1", "9", "1", {"h", "w"}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {"depthwise", "33", "33", "1", {"h", "w"}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 33},
    {"depthwise 5x5", "32", "32", "1", {"h", "w"}, {5, 5}, {2, 2}, {2, 2}, {2, 2}, {1, 1}, 32},
    {"depthwise lopsided", "5", "5", "1", {"h", "w"}, {2, 4}, {1, 3}, {0, 5}, {2, 0}, {2, 1}, 5},
    {"depthwise twice", "5", "10", "1", {"h", "w"}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 5},
    {"line", "7", "16", "7", {"w"}, {5}, {1}, {2}, {1}, {1}},
    {"line depthwise", "20", "20", "1", {"w"}, {5}, {2}, {2}, {2}, {1}, 20},
    {"cube", "3", "8", "3", {"5", "h", "w"}, {2, 3, 3}, {2, 1, 1}, {1, 0, 1}, {0, 0, 1}, {1, 1, 1}},
    {"cube depthwise",
     "8",
     "8",
     "1",
     {"5", "h", "w"},
     {3, 1, 3},
     {1, 1, 2},
     {1, 0, 1},
     {1, 0, 1},
     {1, 1, 1},
     8},
};

static void add(Cases &cases, const Layer &layer, const string &element,
                const std::map<string, int64_t> &knobs = {}) {
  string name = string("conv_filter_gradient/") + layer.name + " " + element;
  for (auto &[knob, value] : knobs)
    name += " " + knob + std::to_string(value);
  Case one{name,
           [=](Model &m) {
             Value x = m.input(typeOf(element, {"n", layer.channels}, layer.image));
             Value dy = m.input(typeOf(element, {"n", layer.filters}, positionsOf(layer)));
             m.output(gradient(m, layer, x, dy, element),
                      Tolerance::close(m.element(element), 600));
           },
           runsOf(layer)};
  if (element == "f32")
    one.card = "conv_filter_gradient";
  one.knobs = knobs;
  cases.push_back(one);
}

/// Only what is inside of the image counts: a border of zeros would make NaN of infinity.
static void addInfinities(Cases &cases) {
  for (int i : {4, 6, 14})
    for (bool isImage : {true, false}) {
      const Layer &layer = kLayers[i];
      cases.push_back(
          {string("conv_filter_gradient/infinite ") + layer.name + (isImage ? " x" : " dy"),
           [=](Model &m) {
             auto input = [&](const string &channels, const std::vector<string> &sizes,
                              bool hasInfinities) {
               Value x = m.input(typeOf("f32", {"n", channels}, sizes));
               if (!hasInfinities)
                 return x;
               Value number = m.input(typeOf("i32", {"n", channels}, sizes), Fill::range(0, 600));
               Value divisor = m.op("cast", {number}, "", typeOf("f32", {"n", channels}, sizes));
               return m.op("div", {x, divisor});
             };
             Value x = input(layer.channels, layer.image, isImage);
             Value dy = input(layer.filters, positionsOf(layer), !isImage);
             m.output(gradient(m, layer, x, dy, "f32"), Tolerance::close(m.element("f32"), 600));
           },
           runsOf(layer)});
    }
}

static void addUnpools(Cases &cases) {
  struct {
    const char *name;
    string image, windows;
    string window, strides, low, high;
  } kWindows[] = {
      {"3x3", "h, w", "h, w", "3, 3", "1, 1", "1, 1", "1, 1"},
      {"3x3 stride", "h, w", "(h - 1) floordiv 2 + 1, (w - 1) floordiv 2 + 1", "3, 3", "2, 2",
       "1, 1", "1, 1"},
      {"2x2", "h, w", "h floordiv 2, w floordiv 2", "2, 2", "2, 2", "0, 0", "0, 0"},
      {"lopsided", "h, w", "(h + 1) floordiv 3 + 1, w + 1", "2, 3", "3, 1", "0, 3", "3, 0"},
      {"line", "w", "w - 1", "4", "1", "2", "0"},
  };
  for (auto &window : kWindows)
    for (const char *channels : {"20", "3"})
      for (const char *kind : {"", "max"}) {
        string walk = "window = array<i64: " + window.window +
                      ">, strides = array<i64: " + window.strides +
                      ">, dilations = array<i64: " + (window.window.size() > 1 ? "1, 1" : "1") +
                      ">, low = array<i64: " + window.low + ">";
        string image = string("f32[n, ") + channels + ", " + window.image + "]";
        string windows = string("f32[n, ") + channels + ", " + window.windows + "]";
        string high = window.high;
        bool isMax = *kind;
        cases.push_back({string("unpool/") + window.name + " " + channels + kind,
                         [=](Model &m) {
                           auto pool = [&](Value x, const char *kind) {
                             return m.op("pool", {x},
                                         string("kind = \"") + kind + "\", " + walk +
                                             ", high = array<i64: " + high + ">",
                                         windows);
                           };
                           Values operands{pool(m.input(image), "average")};
                           if (isMax) {
                             Value x = m.input(image, Fill::any());
                             operands.append({x, pool(x, "max")});
                           }
                           m.output(m.op("unpool", operands, walk, image));
                         },
                         kRuns});
      }
}

void addGradients(Cases &cases) {
  for (const Layer &layer : kLayers)
    for (const char *element : {"f32", "f64", "f16"})
      add(cases, layer, element);
  for (int64_t parts : {1, 8})
    for (auto [m, n] : {std::pair(16, 16), std::pair(3, 64), std::pair(5, 80)})
      for (int i : {1, 2, 4, 5, 11, 14, 18})
        add(cases, kLayers[i], "f32", {{"m", m}, {"n", n}, {"parts", parts}});
  for (int64_t copies : {0, 1})
    for (int64_t turned : {0, 1})
      for (int i : {0, 1, 3, 4, 6, 9, 11, 18})
        add(cases, kLayers[i], "f32",
            {{"m", 5}, {"n", 32}, {"panels", copies}, {"strips", copies}, {"turned", turned}});
  addInfinities(cases);
  addUnpools(cases);
}

} // namespace heddle::ops
