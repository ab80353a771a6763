// ModelMutator: which places of a model are changed, and what they become.

#include "compiler/onnx/ModelMutator.h"

#include <google/protobuf/descriptor.pb.h>

#include <cmath>
#include <fstream>
#include <limits>

namespace heddle::onnx {

/// Limits on parts, on words of one field, and on what is known.
static constexpr size_t kMostParts = 2000, kMostWords = 2000, kMostKnown = 100'000;

ModelMutator::ModelMutator(const std::string &path) : factory(&pool) {
  std::ifstream stream(path, std::ios::binary);
  google::protobuf::FileDescriptorSet files;
  bool isRead = files.ParseFromIstream(&stream) && files.file_size() == 1;
  if (isRead)
    files.mutable_file(0)->mutable_options()->clear_optimize_for();
  if (!isRead || !pool.BuildFile(files.file(0)))
    abort();
}

int64_t ModelMutator::integer() {
  static constexpr int64_t kSmall[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3};
  static constexpr int64_t kExtreme[] = {15,
                                         16,
                                         17,
                                         31,
                                         32,
                                         63,
                                         64,
                                         65,
                                         127,
                                         255,
                                         256,
                                         1000,
                                         65536,
                                         -4,
                                         -8,
                                         -64,
                                         -1000,
                                         INT32_MAX,
                                         INT32_MIN,
                                         int64_t(1) << 31,
                                         int64_t(1) << 40,
                                         int64_t(1) << 62,
                                         INT64_MAX,
                                         INT64_MIN,
                                         INT64_MIN + 1,
                                         INT64_MAX - 1};
  return oneIn(3) ? kExtreme[below(std::size(kExtreme))] : kSmall[below(std::size(kSmall))];
}

double ModelMutator::number() {
  static constexpr float kLargest = std::numeric_limits<float>::max();
  static const double kNumbers[] = {0.0,   -0.0,  1.0,      -1.0,     0.5,      2.0,
                                    1e30,  -1e30, 1e9,      -1e9,     kLargest, -kLargest,
                                    1e-45, NAN,   INFINITY, -INFINITY};
  return kNumbers[below(std::size(kNumbers))];
}

std::string ModelMutator::text(const Field *field) {
  static const std::string kTexts[] = {"",    "x",       "\xff\xfe",           "(",
                                       "[a-", "...ij->", std::string(300, 'a')};
  const std::vector<std::string> &others = words[field];
  if (!strings.empty() && oneIn(2))
    return strings[below(strings.size())];
  if (!others.empty() && !oneIn(8))
    return others[below(others.size())];
  return kTexts[below(std::size(kTexts))];
}

/// Small parts of a model, each once.
void ModelMutator::learn(const Message &message) {
  auto &all = parts[message.GetDescriptor()];
  if (all.size() >= kMostParts || known.size() >= kMostKnown || message.ByteSizeLong() > 1024 ||
      !known.insert(message.GetDescriptor()->name() + message.SerializePartialAsString()).second)
    return;
  all.emplace_back(message.New())->CopyFrom(message);
}

void ModelMutator::collect(Message &message) {
  messages.push_back(&message);
  learn(message);
  const auto *reflection = message.GetReflection();
  std::vector<const Field *> fields;
  reflection->ListFields(message, &fields);
  for (const Field *field : fields) {
    int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < std::min(count, 100); ++i) {
      if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        collect(field->is_repeated() ? *reflection->MutableRepeatedMessage(&message, field, i)
                                     : *reflection->MutableMessage(&message, field));
      } else if (field->cpp_type() == Field::CPPTYPE_STRING) {
        std::string word = field->is_repeated() ? reflection->GetRepeatedString(message, field, i)
                                                : reflection->GetString(message, field);
        if (word.size() > 100)
          continue;
        strings.push_back(word);
        if (words[field].size() < kMostWords && known.insert(field->full_name() + word).second)
          words[field].push_back(word);
      }
    }
  }
}

/// Assigns a new value to the field; `index` is that of a list's element, else -1.
void ModelMutator::assign(Message &message, const Field *field, int index) {
  const auto *reflection = message.GetReflection();
  using R = google::protobuf::Reflection;
  auto set = [&](auto single, auto repeated, auto value) {
    if (index < 0)
      (reflection->*single)(&message, field, value);
    else
      (reflection->*repeated)(&message, field, index, value);
  };
  switch (field->cpp_type()) {
  case Field::CPPTYPE_INT32:
    return set(&R::SetInt32, &R::SetRepeatedInt32, int32_t(oneIn(2) ? below(32) : integer()));
  case Field::CPPTYPE_INT64:
    return set(&R::SetInt64, &R::SetRepeatedInt64, integer());
  case Field::CPPTYPE_UINT32:
    return set(&R::SetUInt32, &R::SetRepeatedUInt32, uint32_t(integer()));
  case Field::CPPTYPE_UINT64:
    return set(&R::SetUInt64, &R::SetRepeatedUInt64, uint64_t(integer()));
  case Field::CPPTYPE_FLOAT:
    return set(&R::SetFloat, &R::SetRepeatedFloat, float(number()));
  case Field::CPPTYPE_DOUBLE:
    return set(&R::SetDouble, &R::SetRepeatedDouble, number());
  case Field::CPPTYPE_BOOL:
    return set(&R::SetBool, &R::SetRepeatedBool, oneIn(2));
  case Field::CPPTYPE_ENUM: {
    int value = field->enum_type()->value(below(field->enum_type()->value_count()))->number();
    return set(&R::SetEnumValue, &R::SetRepeatedEnumValue, value);
  }
  case Field::CPPTYPE_STRING:
    if (index < 0)
      reflection->SetString(&message, field, text(field));
    else
      reflection->SetRepeatedString(&message, field, index, text(field));
    return;
  case Field::CPPTYPE_MESSAGE: {
    auto &others = parts[field->message_type()];
    Message *part = index < 0 ? reflection->MutableMessage(&message, field)
                              : reflection->MutableRepeatedMessage(&message, field, index);
    if (!others.empty())
      part->CopyFrom(*others[below(others.size())]);
  }
  }
}

void ModelMutator::add(Message &message, const Field *field) {
  const auto *reflection = message.GetReflection();
  int count = reflection->FieldSize(message, field);
  switch (field->cpp_type()) {
  case Field::CPPTYPE_INT32:
    reflection->AddInt32(&message, field, 0);
    break;
  case Field::CPPTYPE_INT64:
    reflection->AddInt64(&message, field, 0);
    break;
  case Field::CPPTYPE_UINT64:
    reflection->AddUInt64(&message, field, 0);
    break;
  case Field::CPPTYPE_FLOAT:
    reflection->AddFloat(&message, field, 0);
    break;
  case Field::CPPTYPE_DOUBLE:
    reflection->AddDouble(&message, field, 0);
    break;
  case Field::CPPTYPE_STRING:
    reflection->AddString(&message, field, "");
    break;
  case Field::CPPTYPE_MESSAGE:
    reflection->AddMessage(&message, field);
    break;
  default:
    return;
  }
  assign(message, field, count);
  reflection->SwapElements(&message, field, below(count + 1), count);
}

void ModelMutator::changeList(Message &message, const Field *field) {
  const auto *reflection = message.GetReflection();
  int count = reflection->FieldSize(message, field);
  switch (count == 0 ? 0 : below(6)) {
  case 0:
    return add(message, field);
  case 1:
    reflection->SwapElements(&message, field, below(count), count - 1);
    return reflection->RemoveLast(&message, field);
  case 2:
    return reflection->SwapElements(&message, field, below(count), below(count));
  case 3:
    if (oneIn(4))
      reflection->ClearField(&message, field);
    return;
  default:
    return assign(message, field, below(count));
  }
}

void ModelMutator::changeField(Message &message, const Field *field) {
  if (field->is_repeated())
    changeList(message, field);
  else if (oneIn(8))
    message.GetReflection()->ClearField(&message, field);
  else
    assign(message, field, -1);
}

std::string ModelMutator::mutate(const std::string &bytes, unsigned seed) {
  random.seed(seed);
  const auto *type = pool.FindMessageTypeByName("onnx.ModelProto");
  std::unique_ptr<Message> model(factory.GetPrototype(type)->New());
  if (!model->ParsePartialFromString(bytes))
    return "";
  for (size_t round = 0, rounds = 1 + below(3); round < rounds; ++round) {
    messages.clear();
    strings.clear();
    collect(*model);
    Message &message = *messages[below(messages.size())];
    std::vector<const Field *> fields;
    message.GetReflection()->ListFields(message, &fields);
    const auto *descriptor = message.GetDescriptor();
    if (fields.empty() || oneIn(6))
      fields.assign(1, descriptor->field(below(descriptor->field_count())));
    changeField(message, fields[below(fields.size())]);
  }
  return model->SerializePartialAsString();
}

} // namespace heddle::onnx
