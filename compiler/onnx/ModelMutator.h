// ModelMutator: changes a model in a few places, so that what a fuzzer tries stays a model.
//
// Bytes changed at random hardly ever parse; fields changed through protobuf's reflection always
// do, and so reach the import of the ops. The classes that the importer uses have no reflection
// (onnx.proto asks for the light runtime), so the mutator makes its own.
#ifndef HEDDLE_ONNX_MODEL_MUTATOR_H
#define HEDDLE_ONNX_MODEL_MUTATOR_H

#include <google/protobuf/dynamic_message.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace heddle::onnx {

class ModelMutator {
public:
  /// `path`: what protoc --descriptor_set_out made of onnx.proto.
  explicit ModelMutator(const std::string &path);

  /// A changed model; empty when the bytes are no model.
  std::string mutate(const std::string &bytes, unsigned seed);

private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;

  void collect(Message &message);
  void changeField(Message &message, const Field *field);
  void changeList(Message &message, const Field *field);
  void add(Message &message, const Field *field);
  void assign(Message &message, const Field *field, int index);
  void learn(const Message &message);

  size_t below(size_t limit) { return random() % limit; }
  bool oneIn(size_t count) { return below(count) == 0; }
  int64_t integer();
  double number();
  std::string text(const Field *field);

  google::protobuf::DescriptorPool pool;
  google::protobuf::DynamicMessageFactory factory;
  std::mt19937 random;

  // The messages and strings of the model at hand.
  std::vector<Message *> messages;
  std::vector<std::string> strings;

  // Material from all models so far: parts to put into others, and strings of each field.
  std::map<const google::protobuf::Descriptor *, std::vector<std::unique_ptr<Message>>> parts;
  std::map<const Field *, std::vector<std::string>> words;
  std::set<std::string> known;
};

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_MODEL_MUTATOR_H
