// Custom: ops of the user's own. Only their functions know what they mean, so the oracle calls the
// same ones, with the same checks, as a run does.

#include "compiler/reference/Families.h"

#include "runtime/library/custom.h"

using namespace mlir;

namespace heddle::reference {

static llvm::Error failure(const Call &call, const heddle_custom_outcome_t &outcome) {
  switch (outcome.kind) {
  case HEDDLE_CUSTOM_MISSING:
    return call.error("the op is neither registered nor in its library");
  case HEDDLE_CUSTOM_SHAPE:
    return call.error("its shape function returns " + Twine(outcome.value));
  case HEDDLE_CUSTOM_RESULT:
    return call.error("its shape function gives result " + Twine(outcome.value) +
                      " no possible shape");
  case HEDDLE_CUSTOM_COMPUTE:
    return call.error("its compute function returns " + Twine(outcome.value));
  default:
    return call.error("its compute function writes beyond result " + Twine(outcome.value));
  }
}

Results compute(graph::CustomOp op, const Call &call) {
  SmallVector<StringRef> about;
  ArrayRef<char> text = call[0].bytes();
  StringRef(text.data(), text.size()).split(about, '\0');
  std::vector<heddle_custom_tensor_t> inputs(op.getInputs().size()), outputs(op.getNumResults());
  for (auto [i, input] : llvm::enumerate(inputs)) {
    const Tensor &tensor = call[i + 1];
    input.dtype = graph::onnxTypeOf(tensor.element);
    input.rank = tensor.rank();
    llvm::copy(tensor.shape, input.dims);
    input.data = const_cast<char *>(tensor.bytes().data());
  }
  std::string attributes = about[3].str();
  heddle_custom_call_t asked = {attributes.c_str(),     inputs.data(),           outputs.data(),
                                (int32_t)inputs.size(), (int32_t)outputs.size(), nullptr};
  const heddle_custom_op_t *custom =
      heddle_custom_find(about[0].str().c_str(), about[1].str().c_str(), about[2].str().c_str());
  heddle_custom_outcome_t outcome = {HEDDLE_CUSTOM_MISSING, 0, 0};
  if (custom)
    outcome = heddle_custom_shape(custom, &asked);
  if (outcome.kind)
    return failure(call, outcome);
  Tensors results;
  std::vector<std::vector<char>> rooms(outputs.size()); // with the guards
  for (auto [i, output] : llvm::enumerate(outputs)) {
    if (output.dtype != graph::onnxTypeOf(call.elementOfResult(i)) ||
        output.rank != graph::rankOf(op.getResult(i)))
      return failure(call, {HEDDLE_CUSTOM_RESULT, (int64_t)i, 0});
    auto result = call.allocate({output.dims, output.dims + output.rank}, i);
    if (!result)
      return result.takeError();
    results.push_back(std::move(*result));
    rooms[i].resize(heddle_custom_bytes(&output) + HEDDLE_CUSTOM_GUARD);
    output.data = rooms[i].data();
  }
  outcome = heddle_custom_compute(custom, &asked);
  if (outcome.kind)
    return failure(call, outcome);
  for (auto [result, room] : llvm::zip(results, rooms))
    std::copy(room.begin(), room.end() - HEDDLE_CUSTOM_GUARD, result.data());
  return results;
}

} // namespace heddle::reference
