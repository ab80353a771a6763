// Rows: a ragged batch for engines that know nothing of it. Each row is a batch of its own, cut to
// its length; what they compute of it belongs between zeros.
#ifndef HEDDLE_TOOLS_HEDDLE_PEER_ROWS_H
#define HEDDLE_TOOLS_HEDDLE_PEER_ROWS_H

#include "tools/heddle/model.h"

namespace heddle::cli {

/// The model without --ragged, and what it is fed of the same batch with its padding.
struct PaddedModel {
  PaddedModel(const std::string &path, CompileOptions options, const Module &ragged,
              const Feeds &feeds);

  Module module;
  Feeds feeds;
};

class Rows {
public:
  /// `option` is that of --ragged, `inputs` those of the ragged model, `feeds` what it is fed.
  Rows(const std::string &option, const std::vector<const heddle_value_t *> &inputs,
       const Feeds &feeds);

  int64_t count() const { return static_cast<int64_t>(lengths.size()); }
  int64_t lengthOf(int64_t row) const { return lengths[row]; }
  /// Inputs of one row for the model without --ragged, which has these inputs.
  Feeds feedsOf(int64_t row, const std::vector<const heddle_value_t *> &plain) const;
  /// Whether the sizes of an output are those of rows, and not made from them.
  bool isPlaced(const heddle_value_t &output) const;
  /// Copies what is of one row: from a batch of it alone, or within two padded batches.
  void place(int64_t row, const heddle_value_t &output, const Tensor &alone, Tensor &padded) const;
  void copy(int64_t row, const heddle_value_t &output, const Tensor &from, Tensor &to) const;

private:
  /// The offsets of a row's elements in a padded tensor, in order; `sizes` are those of the row.
  std::vector<int64_t> offsetsOf(int64_t row, const heddle_value_t &value,
                                 const std::vector<int64_t> &dims,
                                 std::vector<int64_t> &sizes) const;

  std::string of, size;
  std::map<std::string, const Tensor *> given;
  std::vector<int64_t> lengths;
};

} // namespace heddle::cli

#endif
