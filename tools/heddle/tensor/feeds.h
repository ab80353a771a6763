// Feeds: what a model is run on: given values, files, ONNX test data, or random numbers.
#ifndef HEDDLE_TOOLS_HEDDLE_TENSOR_FEEDS_H
#define HEDDLE_TOOLS_HEDDLE_TENSOR_FEEDS_H

#include "tools/heddle/tensor/tensor.h"

#include <span>

namespace heddle::cli {

struct FeedOptions {
  std::vector<std::string>
      inputs; // "x=@file.npy", "x=2x3xf32=1,2", "x=random:7", "x=random:7:0..9"
  std::vector<std::string> shapes; // "x=1x3x?x?"
  std::vector<std::string> dims;   // "batch=4"
  std::string dimOption = "--dim"; // option that gave `dims`
  std::string data;                // a folder of input_0.pb, output_0.pb, or what holds one
  uint64_t seed = 0;               // for inputs that nothing else determines
};

/// The sizes of an input or output; none of a list, and of a tensor that may have any rank.
inline std::span<const heddle_dim_t> dimsOf(const heddle_value_t &value) {
  return {value.dims, value.dims ? static_cast<size_t>(value.rank) : 0};
}

/// The parts of "batch:seq=lengths".
struct RaggedOption {
  std::string of, size, input;
  explicit RaggedOption(const std::string &text);
};

struct Feeds {
  std::vector<Tensor> inputs;     // in the model's order
  std::vector<std::string> notes; // assumptions, a line each

  std::vector<heddle_tensor_t> views() const;
};

/// `ragged` holds options of --ragged: the input that says lengths has some between 1 and the size.
Feeds makeFeeds(const std::vector<const heddle_value_t *> &inputs, const FeedOptions &options,
                const std::vector<std::string> &ragged = {});

/// The folder with input_0.pb: `data` or its first test_data_set_N.
std::string testDataFolder(const std::string &data);

/// Random numbers of any dtype: floats in [-1, 1), 8-bit and narrower integers in their whole
/// range, wider ones 0 or 1 (which is right for an index, a mask and a length), or [low, high].
struct Range {
  bool isGiven = false;
  double low = 0, high = 0;
};
void fillRandom(Tensor &tensor, uint64_t seed, Range range);

/// "name" and the rest of "name=rest"; fails with the option's name.
std::pair<std::string, std::string> splitAssignment(const std::string &text, const char *option,
                                                    const char *form);

} // namespace heddle::cli

#endif
