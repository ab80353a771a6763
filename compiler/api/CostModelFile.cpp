// CostModelFile: the inputs are those of python/heddle_lab/cost/network.py: one group of any number
// of nodes, and any number of candidates.

#include "compiler/api/CostModelFile.h"

#include "compiler/learn/Vocabulary.h"
#include "compiler/support/Error.h"

#include "heddle/runtime.h"

using namespace mlir;

namespace heddle {

namespace {
/// The error that a status holds.
llvm::Error errorOf(heddle_status_t *status) {
  if (!status)
    return llvm::Error::success();
  llvm::Error error = makeError(ErrorCode::Refused, heddle_status_message(status));
  heddle_status_destroy(status);
  return error;
}

/// One tensor that a run reads.
struct Feed {
  std::vector<int64_t> dims;
  std::vector<float> floats;
  std::vector<int64_t> integers; // instead, of dtype i64

  heddle_tensor_t view() {
    heddle_tensor_t tensor = {};
    bool isInteger = !integers.empty();
    tensor.data = isInteger ? static_cast<void *>(integers.data()) : floats.data();
    tensor.bytes = static_cast<int64_t>(isInteger ? integers.size() * sizeof(int64_t)
                                                  : floats.size() * sizeof(float));
    tensor.dtype = isInteger ? HEDDLE_INT64 : HEDDLE_FLOAT32;
    tensor.rank = static_cast<int32_t>(dims.size());
    llvm::copy(dims, tensor.dims);
    return tensor;
  }
};

constexpr StringLiteral kInputs[] = {"ops", "nodes", "makers", "readers", "mask", "candidates"};
constexpr StringLiteral kOutputs[] = {"scores", "outside", "version"};
constexpr size_t kMostNodes = 256; // largest size that it was trained with

class CostModelFile : public learn::Model {
public:
  ~CostModelFile() override {
    heddle_session_destroy(session);
    heddle_module_destroy(module);
  }

  llvm::Error load(StringRef path) {
    if (llvm::Error error = errorOf(heddle_module_load(path.str().c_str(), &module)))
      return error;
    if (llvm::Error error = checkNames())
      return error;
    heddle_session_options_t options = {};
    options.size = sizeof options;
    options.threads = 1;
    if (llvm::Error error = errorOf(heddle_session_create(module, &options, &session)))
      return error;
    return checkVersion();
  }

  llvm::Expected<Scores> score(const learn::GroupFeatures &group,
                               ArrayRef<std::vector<double>> candidates) override {
    Scores scores;
    if (group.ops.size() > kMostNodes) { // all are beyond what it was trained with
      scores.logarithms.assign(candidates.size(), 0);
      scores.outside.assign(candidates.size(), static_cast<double>(group.ops.size()));
      return scores;
    }
    std::vector<std::vector<double>> known(candidates.begin(), candidates.end());
    for (std::vector<double> &each : known)
      each.resize(std::min(learned, each.size()));
    auto results = run(group, known);
    if (!results)
      return results.takeError();
    scores.logarithms.assign((*results)[0].begin(), (*results)[0].end());
    scores.outside.assign((*results)[1].begin(), (*results)[1].end());
    if (scores.logarithms.size() != candidates.size() || scores.outside.size() != candidates.size())
      return makeError(ErrorCode::Refused, "it gives other than one score for each candidate");
    for (auto [outside, each] : llvm::zip(scores.outside, candidates)) // what it cannot tell apart
      for (size_t i = learned; i < each.size(); ++i)
        outside += each[i] != 0;
    return scores;
  }

private:
  llvm::Error checkNames() const {
    auto check = [](size_t count, auto valueAt, ArrayRef<StringLiteral> names, StringRef what) {
      bool isRight = count == names.size();
      for (size_t i = 0; isRight && i < count; ++i)
        isRight = names[i] == valueAt(i)->name;
      return isRight ? llvm::Error::success()
                     : makeError(ErrorCode::Refused,
                                 "its " + what +
                                     " are not those of a cost model: " + llvm::join(names, ", "));
    };
    if (llvm::Error error = check(
            heddle_module_input_count(module),
            [&](size_t i) { return heddle_module_input(module, i); }, kInputs, "inputs"))
      return error;
    return check(
        heddle_module_output_count(module),
        [&](size_t i) { return heddle_module_output(module, i); }, kOutputs, "outputs");
  }

  /// The number of features, and the version that they are of, which a run tells.
  llvm::Error checkVersion() {
    size_t nodeWidth = learn::nodeNames().size(), width = learn::candidateNames().size();
    auto widthOf = [&](size_t input) {
      const heddle_value_t *value = heddle_module_input(module, input);
      return value->rank > 0 ? value->dims[value->rank - 1].value : -1;
    };
    learned = static_cast<size_t>(std::max<int64_t>(0, widthOf(5)));
    if (widthOf(1) != static_cast<int64_t>(nodeWidth) || learned > width ||
        learned + learn::kAddedFeatures < width)
      return makeError(ErrorCode::Refused, "it has learned " + Twine(widthOf(1)) +
                                               " features of "
                                               "nodes and " +
                                               Twine(widthOf(5)) +
                                               " of candidates, this heddle has " +
                                               Twine(nodeWidth) + " and " + Twine(width));
    learn::GroupFeatures one{{0}, {std::vector<double>(nodeWidth)}, {}};
    auto results = run(one, std::vector<double>(learned));
    if (!results)
      return results.takeError();
    ArrayRef<float> version = (*results)[2];
    if (version.size() != 2 || version[0] != static_cast<float>(learn::kFeaturesVersion))
      return makeError(ErrorCode::Refused,
                       "it has learned features of version " +
                           Twine(version.empty() ? 0 : static_cast<int64_t>(version[0])) +
                           ", this heddle has " + Twine(learn::kFeaturesVersion));
    words = static_cast<int64_t>(version[1]);
    return llvm::Error::success();
  }

  /// All outputs.
  llvm::Expected<std::vector<std::vector<float>>> run(const learn::GroupFeatures &group,
                                                      ArrayRef<std::vector<double>> candidates) {
    std::vector<Feed> feeds = feedsOf(group, candidates);
    std::vector<heddle_tensor_t> inputs, outputs(std::size(kOutputs));
    for (Feed &feed : feeds)
      inputs.push_back(feed.view());
    if (llvm::Error error = errorOf(heddle_session_run(session, inputs.data(), inputs.size(),
                                                       outputs.data(), outputs.size())))
      return std::move(error);
    std::vector<std::vector<float>> results;
    bool areFloats = true;
    for (heddle_tensor_t &output : outputs) {
      areFloats &= output.dtype == HEDDLE_FLOAT32;
      const float *data = static_cast<const float *>(output.data);
      results.emplace_back(data, data + (areFloats ? output.bytes / int64_t(sizeof(float)) : 0));
      heddle_tensor_release(&output);
    }
    if (!areFloats)
      return makeError(ErrorCode::Refused, "its outputs are not f32");
    return results;
  }

  std::vector<Feed> feedsOf(const learn::GroupFeatures &group,
                            ArrayRef<std::vector<double>> candidates) const {
    int64_t nodes = static_cast<int64_t>(group.ops.size());
    auto matrix = [&] { return Feed{{1, nodes, nodes}, std::vector<float>(nodes * nodes), {}}; };
    Feed ops{{1, nodes}, {}, group.ops}, makers = matrix(), readers = matrix();
    for (int64_t &op : ops.integers) // a word that was added later
      op = op < words ? op : 0;
    std::vector<float> made(nodes), read(nodes);
    for (auto &[maker, reader] : group.edges) {
      ++read[maker];
      ++made[reader];
    }
    for (auto &[maker, reader] : group.edges) { // means over what a node reads, and what reads it
      makers.floats[reader * nodes + maker] = 1 / made[reader];
      readers.floats[maker * nodes + reader] = 1 / read[maker];
    }
    auto rowsOf = [](ArrayRef<std::vector<double>> rows) {
      Feed feed{{1, static_cast<int64_t>(rows.size()), 0}, {}, {}};
      for (const std::vector<double> &row : rows) {
        feed.dims[2] = static_cast<int64_t>(row.size());
        for (double value : row)
          feed.floats.push_back(static_cast<float>(value));
      }
      return feed;
    };
    Feed mask{{1, nodes, 1}, std::vector<float>(nodes, 1), {}};
    return {std::move(ops),     rowsOf(group.nodes), std::move(makers),
            std::move(readers), std::move(mask),     rowsOf(candidates)};
  }

  heddle_module_t *module = nullptr;
  heddle_session_t *session = nullptr;
  int64_t words = 1;  // size of its vocabulary
  size_t learned = 0; // features of candidates
};
} // namespace

llvm::Expected<std::unique_ptr<learn::Model>> loadCostModel(StringRef path) {
  auto model = std::make_unique<CostModelFile>();
  if (llvm::Error error = model->load(path))
    return std::move(error);
  return std::unique_ptr<learn::Model>(std::move(model));
}

} // namespace heddle
