// Feeds: see feeds.h. Sizes that nothing gives are taken from other inputs of the same symbol, else
// they are 1, which a note says.

#include "tools/heddle/tensor/feeds.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/tensor/npy.h"
#include "tools/heddle/tensor/tensor_proto.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

namespace heddle::cli {

namespace {

using Values = std::vector<const heddle_value_t *>;

/// The sizes that symbols have.
using Symbols = std::map<std::string, int64_t>;

} // namespace

std::vector<heddle_tensor_t> Feeds::views() const {
  std::vector<heddle_tensor_t> views;
  for (const Tensor &input : inputs)
    views.push_back(input.view());
  return views;
}

std::pair<std::string, std::string> splitAssignment(const std::string &text, const char *option,
                                                    const char *form) {
  size_t at = text.find('=');
  if (at == std::string::npos || at + 1 == text.size())
    failUsage(std::string(option) + " '" + text + "': expected " + form);
  return {text.substr(0, at), text.substr(at + 1)};
}

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

template <typename T> static std::optional<T> parsed(const std::string &text) {
  T value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

static size_t indexOf(const Values &inputs, const std::string &name, const std::string &option) {
  std::vector<std::string> names;
  for (const heddle_value_t *input : inputs)
    names.push_back(input->name);
  auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end())
    return static_cast<size_t>(found - names.begin());
  std::string known;
  for (const std::string &each : names)
    known += (known.empty() ? "" : ", ") + each;
  failUsage(option + ": the model has no input '" + name + "'" + didYouMean(name, names) +
            " (inputs: " + known + ")");
}

/// The number of an element as text: "1.5", "-inf", "true".
static void setText(Tensor &tensor, int64_t index, const std::string &text,
                    const std::string &what) {
  if (tensor.dtype == HEDDLE_STRING) {
    tensor.strings[static_cast<size_t>(index)] = text;
    return;
  }
  if (tensor.dtype == HEDDLE_BOOL && (text == "true" || text == "false"))
    return setInteger(tensor, index, text == "true");
  if (auto whole = parsed<int64_t>(text); whole && !isFloating(tensor.dtype))
    return setInteger(tensor, index, *whole);
  if (auto real = parsed<double>(text); real && isFloating(tensor.dtype))
    return setElement(tensor, index, *real);
  failUsage(what + ": '" + text + "' is not an element of " + heddle_dtype_name(tensor.dtype));
}

/// "2x3xf32=1,2,3,4,5,6"; one value fills the tensor.
static Tensor parseLiteral(const std::string &text, const std::string &what) {
  const char *form = "expected @FILE.npy, random:SEED, or SIZESxDTYPE=VALUES as in 2x2xf32=1,2,3,4";
  size_t equals = text.find('=');
  if (equals == std::string::npos)
    failUsage(what + ": " + form);
  std::vector<std::string> words = split(text.substr(0, equals), 'x');
  int32_t dtype = words.empty() ? 0 : dtypeOf(words.back());
  if (!dtype || isComplex(dtype))
    failUsage(what + ": '" + (words.empty() ? "" : words.back()) + "' is not a dtype" +
              (words.empty() ? "" : didYouMean(words.back(), dtypeNames())) + "; " + form);
  words.pop_back();
  std::vector<int64_t> dims;
  for (const std::string &word : words) {
    auto dim = parsed<int64_t>(word);
    if (!dim || *dim < 0)
      failUsage(what + ": '" + word + "' is not a size; " + form);
    dims.push_back(*dim);
  }
  Tensor tensor = makeTensor(dtype, dims, what);
  std::vector<std::string> values = split(text.substr(equals + 1), ',');
  int64_t count = tensor.count(), given = static_cast<int64_t>(values.size());
  if (given != count && given != 1)
    failUsage(what + ": " + formatDims(dims) + " needs " + std::to_string(count) +
              " values (or one for all), but has " + std::to_string(given));
  for (int64_t i = 0; i < count; ++i)
    setText(tensor, i, values[static_cast<size_t>(given == 1 ? 0 : i)], what);
  return tensor;
}

/// "random:7" or "random:7:0..9".
static std::pair<uint64_t, Range> parseRandom(const std::string &text, const std::string &what) {
  std::vector<std::string> words = split(text, ':');
  auto seed = words.size() > 1 ? parsed<uint64_t>(words[1]) : std::nullopt;
  Range range;
  if (words.size() == 3) {
    size_t dots = words[2].find("..");
    auto low = dots == std::string::npos ? std::nullopt : parsed<double>(words[2].substr(0, dots));
    auto high = low ? parsed<double>(words[2].substr(dots + 2)) : std::nullopt;
    if (low && high)
      range = {*low <= *high, *low, *high};
  }
  if (!seed || words.size() > 3 || (words.size() == 3 && !range.isGiven))
    failUsage(what + ": expected random:SEED or random:SEED:LOW..HIGH");
  return {*seed, range};
}

/// Sizes of a tensor that was given also say what the symbols of its input are.
static void bind(Symbols &symbols, const heddle_value_t &value, const std::vector<int64_t> &dims) {
  for (size_t i = 0; i < std::min(dims.size(), dimsOf(value).size()); ++i)
    if (value.dims[i].value == HEDDLE_UNKNOWN && dims[i] >= 0)
      symbols.emplace(value.dims[i].text, dims[i]);
}

/// The sizes of "x=1x3x?x?"; -1 if it says "?".
static std::vector<int64_t> parseSizes(const std::string &sizes, const std::string &option) {
  std::vector<int64_t> dims;
  for (const std::string &word : split(sizes, 'x')) {
    auto dim = word == "?" ? HEDDLE_UNKNOWN : parsed<int64_t>(word);
    if (!dim || (*dim < 0 && word != "?"))
      failUsage(option + ": '" + word + "' is not a size; expected sizes as in x=1x3x?x?");
    dims.push_back(*dim);
  }
  return dims;
}

static std::vector<std::string> symbolNames(const Values &inputs) {
  std::vector<std::string> names;
  for (const heddle_value_t *input : inputs)
    for (const heddle_dim_t &dim : dimsOf(*input))
      if (dim.value == HEDDLE_UNKNOWN)
        names.push_back(dim.text);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// The symbol that a caller means: by its name, or as dimension 0 of input x by "x.0".
static std::string resolved(const Values &inputs, const std::string &name) {
  size_t dot = name.rfind('.');
  auto number = dot == std::string::npos ? std::nullopt : parsed<size_t>(name.substr(dot + 1));
  for (const heddle_value_t *input : inputs)
    if (number && name.substr(0, dot) == input->name && *number < dimsOf(*input).size() &&
        input->dims[*number].value == HEDDLE_UNKNOWN)
      return input->dims[*number].text;
  return name;
}

static void readDims(const Values &inputs, const FeedOptions &options, Symbols &symbols) {
  for (const std::string &text : options.dims) {
    auto [name, size] = splitAssignment(text, options.dimOption.c_str(), "NAME=SIZE as in batch=4");
    auto value = parsed<int64_t>(size);
    if (!value || *value < 0)
      failUsage(options.dimOption + " '" + text + "': '" + size + "' is not a size");
    std::vector<std::string> names = symbolNames(inputs);
    std::string symbol = resolved(inputs, name);
    if (!std::binary_search(names.begin(), names.end(), symbol)) {
      std::string known;
      for (const std::string &each : names)
        known += (known.empty() ? "" : ", ") + each;
      failUsage(
          options.dimOption + " '" + text + "': no input has a size named '" + name + "'" +
          didYouMean(name, names) +
          (known.empty() ? " (all sizes are fixed)" : " (sizes that are open: " + known + ")"));
    }
    symbols[symbol] = *value;
  }
}

static std::map<size_t, std::vector<int64_t>>
readShapes(const Values &inputs, const FeedOptions &options, Symbols &symbols) {
  std::map<size_t, std::vector<int64_t>> shapes;
  for (const std::string &text : options.shapes) {
    std::string option = "--shape '" + text + "'";
    auto [name, sizes] = splitAssignment(text, "--shape", "NAME=SIZES as in x=1x3x224x224");
    size_t index = indexOf(inputs, name, option);
    std::vector<int64_t> dims = parseSizes(sizes, option);
    if (dims.size() != dimsOf(*inputs[index]).size())
      failUsage(option + ": it has " + std::to_string(dims.size()) + " sizes, but input '" + name +
                "' has rank " + std::to_string(dimsOf(*inputs[index]).size()));
    bind(symbols, *inputs[index], dims);
    shapes[index] = std::move(dims);
  }
  return shapes;
}

std::string testDataFolder(const std::string &data) {
  namespace fs = std::filesystem;
  for (const fs::path &folder : {fs::path(data), fs::path(data) / "test_data_set_0"})
    if (fs::exists(folder / "input_0.pb"))
      return folder.string();
  failUsage("--data '" + data + "': neither it nor its test_data_set_0 holds an input_0.pb");
}

/// The sizes of an input that is to be filled with random numbers.
static std::vector<int64_t> chooseDims(const heddle_value_t &value,
                                       const std::vector<int64_t> *shape, const Symbols &symbols,
                                       std::vector<std::string> &notes) {
  std::vector<int64_t> dims;
  for (int32_t i = 0; i < value.rank; ++i) {
    int64_t dim = value.dims[i].value;
    if (shape && (*shape)[static_cast<size_t>(i)] != HEDDLE_UNKNOWN)
      dim = (*shape)[static_cast<size_t>(i)];
    if (auto found = symbols.find(value.dims[i].text);
        dim == HEDDLE_UNKNOWN && found != symbols.end())
      dim = found->second;
    if (dim == HEDDLE_UNKNOWN) {
      notes.push_back("input '" + std::string(value.name) + "': size " + std::to_string(i) + " ('" +
                      value.dims[i].text + "') is taken as 1; --shape or --dim say otherwise");
      dim = 1;
    }
    dims.push_back(dim);
  }
  return dims;
}

RaggedOption::RaggedOption(const std::string &text) {
  size_t colon = text.find(':'), equals = text.find('=');
  if (colon != std::string::npos && equals != std::string::npos && colon < equals) {
    of = text.substr(0, colon);
    size = text.substr(colon + 1, equals - colon - 1);
    input = text.substr(equals + 1);
  }
}

/// Lengths of rows, from 1 where there is room: a vector of them, or a mask of ones and then zeros.
static void fillLengths(Tensor &tensor, uint64_t seed, int64_t most) {
  bool isMask = tensor.dims.size() == 2;
  if (isMask)
    most = tensor.dims[1];
  Tensor lengths = makeTensor(HEDDLE_INT64, {tensor.dims[0]}, "lengths of rows");
  fillRandom(lengths, seed, {true, std::min(1.0, double(most)), double(most)});
  for (int64_t row = 0; row < tensor.dims[0]; ++row) {
    int64_t length = integerElement(lengths, row);
    for (int64_t i = 0; isMask && i < most; ++i)
      setElement(tensor, row * most + i, i < length);
    if (!isMask)
      setInteger(tensor, row, length);
  }
}

Feeds makeFeeds(const Values &inputs, const FeedOptions &options,
                const std::vector<std::string> &ragged) {
  Feeds feeds;
  Symbols symbols;
  std::map<size_t, Tensor> given;
  std::map<size_t, std::pair<uint64_t, Range>> random;
  readDims(inputs, options, symbols);
  if (!options.data.empty()) {
    std::string folder = testDataFolder(options.data);
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::string path = folder + "/input_" + std::to_string(i) + ".pb";
      if (std::filesystem::exists(path))
        given[i] = readTensorProto(path);
    }
  }
  for (const std::string &text : options.inputs) {
    std::string what = "--input '" + text + "'";
    auto [name, value] = splitAssignment(text, "--input", "NAME=VALUE as in x=@x.npy");
    size_t index = indexOf(inputs, name, what);
    if (value[0] == '@')
      given[index] = readNpy(value.substr(1), inputs[index]->dtype);
    else if (value.starts_with("random:"))
      random[index] = parseRandom(value, what);
    else
      given[index] = parseLiteral(value, what);
  }
  for (const auto &[index, tensor] : given)
    bind(symbols, *inputs[index], tensor.dims);
  auto shapes = readShapes(inputs, options, symbols);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (auto found = given.find(i); found != given.end()) {
      feeds.inputs.push_back(std::move(found->second));
      continue;
    }
    const heddle_value_t &value = *inputs[i];
    if (value.kind == HEDDLE_KIND_ANY_RANK)
      failUsage("input '" + std::string(value.name) +
                "' may have any rank; give it with --input, or its shape with --shape");
    if (value.kind != HEDDLE_KIND_TENSOR)
      failUsage("input '" + std::string(value.name) +
                "' is a sequence or an optional; use the C API or Python");
    auto shape = shapes.find(i);
    auto dims =
        chooseDims(value, shape == shapes.end() ? nullptr : &shape->second, symbols, feeds.notes);
    bind(symbols, value, dims);
    Tensor tensor = makeTensor(value.dtype, dims, "input '" + std::string(value.name) + "'");
    auto [seed, range] = random.count(i) ? random[i] : std::pair(options.seed + i, Range());
    std::optional<int64_t> most;
    for (const std::string &text : ragged)
      if (RaggedOption names(text); names.input == value.name && !random.count(i))
        most = symbols.count(names.size) ? symbols[names.size] : 0;
    if (most)
      fillLengths(tensor, seed, *most);
    else if (value.dtype != HEDDLE_STRING) // random strings would be empty ones
      fillRandom(tensor, seed, range);
    feeds.inputs.push_back(std::move(tensor));
  }
  return feeds;
}

} // namespace heddle::cli
