// rows: cuts padded tensors into rows, and puts rows together.

#include "tools/heddle/peer/rows.h"

#include "tools/heddle/failure.h"

#include <algorithm>
#include <cstring>

namespace heddle::cli {

static void copyElement(const Tensor &from, int64_t at, Tensor &to, int64_t place) {
  size_t bytes = static_cast<size_t>(heddle_dtype_bits(from.dtype)) / 8;
  if (from.dtype == HEDDLE_STRING)
    to.strings[place] = from.strings[at];
  else if (bytes == 0)
    setInteger(to, place, integerElement(from, at));
  else
    std::memcpy(&to.bytes[place * bytes], &from.bytes[at * bytes], bytes);
}

static Module openPadded(const std::string &path, CompileOptions options) {
  options.ragged.clear();
  options.ragged_outputs.clear();
  return openModel(path, options);
}

PaddedModel::PaddedModel(const std::string &path, CompileOptions options, const Module &ragged,
                         const Feeds &given)
    : module(openPadded(path, std::move(options))) {
  std::vector<const heddle_value_t *> inputs = inputsOf(ragged);
  for (const heddle_value_t *input : inputsOf(module))
    for (size_t i = 0; i < inputs.size(); ++i)
      if (std::string(inputs[i]->name) == input->name)
        feeds.inputs.push_back(given.inputs[i]);
}

Rows::Rows(const std::string &option, const std::vector<const heddle_value_t *> &inputs,
           const Feeds &feeds) {
  RaggedOption names(option);
  of = names.of;
  size = names.size;
  for (size_t i = 0; i < inputs.size(); ++i)
    given[inputs[i]->name] = &feeds.inputs[i];
  const Tensor &source = *given.at(names.input);
  for (int64_t row = 0; row < source.dims[0]; ++row) {
    int64_t length = 0, width = source.dims.size() == 2 ? source.dims[1] : 1;
    for (int64_t i = 0; i < width; ++i)
      length += static_cast<int64_t>(element(source, row * width + i));
    lengths.push_back(length);
  }
}

std::vector<int64_t> Rows::offsetsOf(int64_t row, const heddle_value_t &value,
                                     const std::vector<int64_t> &dims,
                                     std::vector<int64_t> &sizes) const {
  std::vector<int64_t> offsets = {0};
  sizes.clear();
  for (size_t i = 0; i < dims.size(); ++i) {
    bool isOf = value.dims[i].text == of, isSize = value.dims[i].text == size;
    int64_t count = isOf ? 1 : isSize ? lengths[row] : dims[i];
    sizes.push_back(count);
    std::vector<int64_t> inner;
    for (int64_t offset : offsets)
      for (int64_t k = 0; k < count; ++k)
        inner.push_back(offset * dims[i] + (isOf ? row : k));
    offsets = std::move(inner);
  }
  return offsets;
}

Feeds Rows::feedsOf(int64_t row, const std::vector<const heddle_value_t *> &plain) const {
  Feeds feeds;
  for (const heddle_value_t *input : plain) {
    const Tensor &whole = *given.at(input->name);
    std::vector<int64_t> sizes, offsets = offsetsOf(row, *input, whole.dims, sizes);
    Tensor part = makeTensor(whole.dtype, sizes, "input '" + std::string(input->name) + "'");
    for (size_t i = 0; i < offsets.size(); ++i)
      copyElement(whole, offsets[i], part, static_cast<int64_t>(i));
    feeds.inputs.push_back(std::move(part));
  }
  return feeds;
}

bool Rows::isPlaced(const heddle_value_t &output) const {
  if (output.kind != HEDDLE_KIND_TENSOR)
    return false;
  for (int32_t i = 0; i < output.rank; ++i) {
    std::string text = output.dims[i].text;
    if (output.dims[i].value == HEDDLE_UNKNOWN && text != of && text != size)
      return false;
  }
  return std::any_of(output.dims, output.dims + output.rank,
                     [&](const heddle_dim_t &dim) { return dim.text == of; });
}

void Rows::place(int64_t row, const heddle_value_t &output, const Tensor &alone,
                 Tensor &padded) const {
  std::vector<int64_t> sizes, offsets = offsetsOf(row, output, padded.dims, sizes);
  if (sizes != alone.dims || alone.dtype != padded.dtype)
    throw Failure(HEDDLE_INTERNAL, "row " + std::to_string(row) + " of output '" + output.name +
                                       "' is " + formatDims(alone.dims) + " instead of " +
                                       formatDims(sizes));
  for (size_t i = 0; i < offsets.size(); ++i)
    copyElement(alone, static_cast<int64_t>(i), padded, offsets[i]);
}

void Rows::copy(int64_t row, const heddle_value_t &output, const Tensor &from, Tensor &to) const {
  std::vector<int64_t> sizes;
  for (int64_t offset : offsetsOf(row, output, to.dims, sizes))
    copyElement(from, offset, to, offset);
}

} // namespace heddle::cli
