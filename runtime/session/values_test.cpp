// values_test: what is not plain: narrow elements, strings, sequences, and the services on them.
// The executables are written here, each for one test. SPDX-License-Identifier: Apache-2.0
#include "runtime/session/testing.h"

#include "runtime/session/strings.h"
#include "runtime/session/text.h"

#include <algorithm>

namespace {

const heddle_io_dim_t kVector[] = {{HEDDLE_DYNAMIC, 0, "n"}};
const char *const kSymbols[] = {"n"};

heddle_io_t tensorOf(const char *name, int32_t dtype) {
  return {name, dtype, 1, kVector, HEDDLE_ENCODING_DENSE, 0, nullptr, HEDDLE_IO_TENSOR, 0, -1};
}
heddle_io_t listOf(const char *name, int32_t dtype, int32_t kind, int32_t rank = -1) {
  return {name, dtype, 0, nullptr, HEDDLE_ENCODING_DENSE, 0, nullptr, kind, rank, -1};
}

/// An executable with one input and one output.
struct Executable : heddle_executable_t {
  heddle_io_t input, output;
  const char *texts[4] = {"%lld of %lld", "rank %lld, not %lld", "%lld against %lld", "last"};

  Executable(heddle_io_t from, heddle_io_t to, int32_t (*code)(heddle_call_t *))
      : heddle_executable_t{}, input(from), output(to) {
    magic = HEDDLE_EXECUTABLE_MAGIC;
    abi_version = HEDDLE_ABI_VERSION;
    model = "boxes";
    features = "";
    input_count = output_count = 1;
    symbol_count = input.kind == HEDDLE_IO_TENSOR;
    inputs = &input;
    outputs = &output;
    symbols = kSymbols;
    message_count = 4;
    messages = texts;
    sizes = [](const int64_t *values, int64_t *arena, int64_t *dims, int64_t *) {
      *arena = 0;
      if (values)
        dims[0] = values[0];
      return 0;
    };
    run = code;
  }
};

/// Gives the caller's input back.
int32_t copyWords(heddle_call_t *call) {
  std::copy_n(static_cast<const int64_t *>(call->inputs[0]), call->symbols[0],
              static_cast<int64_t *>(call->outputs[0]));
  return call->status;
}
int32_t copyBytes(heddle_call_t *call) {
  std::copy_n(static_cast<const uint8_t *>(call->inputs[0]), call->symbols[0],
              static_cast<uint8_t *>(call->outputs[0]));
  return call->status;
}
int64_t &handleIn(const void *memory) {
  return *static_cast<int64_t *>(const_cast<void *>(memory));
}
int32_t copyHandle(heddle_call_t *call) {
  handleIn(call->outputs[0]) = handleIn(call->inputs[0]);
  return call->status;
}

TEST(Values, NarrowElementsOfAnyNumberGoThrough) {
  for (int32_t dtype : {HEDDLE_INT2, HEDDLE_UINT2, HEDDLE_INT4, HEDDLE_UINT4, HEDDLE_FLOAT4E2M1})
    for (int64_t count = 0; count < 12; ++count) {
      Executable executable(tensorOf("x", dtype), tensorOf("y", dtype), copyBytes);
      TestSession session(executable);
      int bits = heddle_dtype_bits(dtype);
      std::vector<uint8_t> packed((count * bits + 7) / 8, 0);
      for (int64_t i = 0; i < count; ++i)
        packed[i * bits / 8] |= ((i * 7 + 3) & ((1 << bits) - 1)) << (i * bits % 8);
      heddle_tensor_t x = {};
      x.data = packed.data();
      x.bytes = packed.size();
      x.dtype = dtype;
      x.rank = 1;
      x.dims[0] = count;
      std::vector<heddle_tensor_t> outputs(1);
      ASSERT_EQ(session.run({x}, outputs), "");
      ASSERT_EQ(outputs[0].bytes, x.bytes);
      EXPECT_TRUE(
          std::equal(packed.begin(), packed.end(), static_cast<uint8_t *>(outputs[0].data)));
      heddle_tensor_release(&outputs[0]);
      std::vector<uint8_t> own(packed.size() + 1, 0xaa);
      outputs[0] = x;
      outputs[0].data = own.data();
      ASSERT_EQ(session.run({x}, outputs), "");
      EXPECT_TRUE(std::equal(packed.begin(), packed.end(), own.begin()));
      EXPECT_EQ(own.back(), 0xaa);
    }
}

TEST(Values, StringsOfAnyBytesGoThrough) {
  Executable executable(tensorOf("x", HEDDLE_STRING), tensorOf("y", HEDDLE_STRING), copyWords);
  TestSession session(executable);
  std::vector<heddle_string_t> texts = {{"a\0b", 3}, {nullptr, 0}, {"\xff\xfe", 2}, {"a\0b", 3}};
  for (int round = 0; round < 3; ++round) {
    std::vector<heddle_tensor_t> outputs(1);
    ASSERT_EQ(session.run({tensorOver(texts, {4})}, outputs), "");
    auto *found = static_cast<heddle_string_t *>(outputs[0].data);
    for (int i : {0, 1, 2, 3})
      EXPECT_EQ(std::string(found[i].data, found[i].size),
                texts[i].size ? std::string(texts[i].data, texts[i].size) : "");
    heddle_tensor_release(&outputs[0]);
  }
  std::vector<heddle_tensor_t> given = {tensorOver(texts, {4})};
  EXPECT_NE(session.run({tensorOver(texts, {4})}, given).find("pass NULL"), std::string::npos);
}

TEST(Values, SequencesGoThrough) {
  Executable executable(listOf("x", HEDDLE_FLOAT32, HEDDLE_IO_OPTIONAL_SEQUENCE),
                        listOf("y", HEDDLE_FLOAT32, HEDDLE_IO_OPTIONAL_SEQUENCE), copyHandle);
  TestSession session(executable);
  std::vector<float> first = {1, 2, 3}, second = {4}, none;
  std::vector<heddle_tensor_t> items = {tensorOver(first, {3}), tensorOver(second, {1, 1}),
                                        tensorOver(none, {0, 7})};
  std::vector<heddle_tensor_t> outputs(1);
  heddle_tensor_t x = tensorOver(items, {3});
  ASSERT_EQ(session.run({x}, outputs), "");
  ASSERT_EQ(outputs[0].dtype, HEDDLE_SEQUENCE);
  ASSERT_EQ(outputs[0].dims[0], 3);
  auto *found = static_cast<heddle_tensor_t *>(outputs[0].data);
  EXPECT_EQ(static_cast<float *>(found[0].data)[2], 3);
  EXPECT_EQ(static_cast<float *>(found[1].data)[0], 4);
  EXPECT_EQ(found[2].dims[1], 7);
  heddle_tensor_release(&outputs[0]);
  x.dims[0] = -1;
  ASSERT_EQ(session.run({x}, outputs), "");
  EXPECT_EQ(outputs[0].dims[0], -1);
  EXPECT_EQ(outputs[0].owner, nullptr);
  x.dims[0] = 3;
  items[1].dtype = HEDDLE_INT32;
  items[2].rank = 99;
  EXPECT_EQ(session.run({x}, outputs),
            "model 'boxes': wrong inputs:\n"
            "  input 'x': tensor 1 has dtype int32 (6), but float32 (1) is allowed\n"
            "  input 'x': tensor 2 has rank 99, but -1 is allowed");
}

/// Asks for tensor 2 of the sequence.
int32_t takeThird(heddle_call_t *call) {
  int64_t frame[] = {0, 0, handleIn(call->inputs[0]), 2, 1, 0};
  call->services[HEDDLE_SERVICE_LIST_AT](call, frame);
  return call->status;
}

TEST(Values, ServicesRefuseWhatIsNotThere) {
  Executable executable(listOf("x", HEDDLE_FLOAT32, HEDDLE_IO_SEQUENCE),
                        listOf("y", HEDDLE_FLOAT32, HEDDLE_IO_SEQUENCE), takeThird);
  TestSession session(executable);
  std::vector<float> values = {1, 2};
  std::vector<heddle_tensor_t> items(2, tensorOver(values, {2})), outputs(1);
  EXPECT_EQ(session.run({tensorOver(items, {2})}, outputs), "model 'boxes': 2 of 2");
  items.push_back(tensorOver(values, {1, 2}));
  EXPECT_EQ(session.run({tensorOver(items, {3})}, outputs), "model 'boxes': rank 2, not 1");
}

/// Profiles two groups; the second one is launched twice.
int32_t tellProfile(heddle_call_t *call) {
  for (int64_t group : {0, -1, 5, -1, 5, -1})
    call->services[HEDDLE_SERVICE_PROFILE](call, &group);
  return copyWords(call);
}

TEST(Values, ProfilesTellGroups) {
  Executable executable(tensorOf("x", HEDDLE_INT64), tensorOf("y", HEDDLE_INT64), tellProfile);
  heddle_module_t *module = nullptr;
  ASSERT_EQ(take(heddle_module_from_executable(&executable, nullptr, nullptr, &module)), "");
  std::vector<int64_t> told, x = {1, 2}, y = {0, 0};
  auto tell = [](void *data, int64_t group, int64_t nanoseconds) {
    EXPECT_GE(nanoseconds, 0);
    static_cast<std::vector<int64_t> *>(data)->push_back(group);
  };
  heddle_session_options_t options = {sizeof options, 1, nullptr, tell, &told};
  for (size_t size : {sizeof options, offsetof(heddle_session_options_t, profile)}) {
    options.size = size; // the shorter one is that of callers that know of no profiles
    heddle_session_t *session = nullptr;
    ASSERT_EQ(take(heddle_session_create(module, &options, &session)), "");
    heddle_tensor_t input = tensorOver(x, {2}), output = tensorOver(y, {2});
    EXPECT_EQ(take(heddle_session_run(session, &input, 1, &output, 1)), "");
    heddle_session_destroy(session);
  }
  heddle_module_destroy(module);
  EXPECT_EQ(told, (std::vector<int64_t>{0, 5, 5}));
  EXPECT_EQ(y, x);
}

/// Splits at commas, and joins the second row of pieces.
int32_t splitAndJoin(heddle_call_t *call) {
  int64_t counts[4], comma = 0;
  int64_t frame[] = {
      0, 0, call->symbols[0], (int64_t)call->inputs[0], (int64_t)&comma, -1, (int64_t)counts, 0};
  call->services[HEDDLE_SERVICE_STRING_SPLIT](call, frame);
  auto *pieces = reinterpret_cast<int64_t *>(frame[0]);
  auto *result = static_cast<int64_t *>(call->outputs[0]);
  for (int64_t i = 0; i < call->symbols[0]; ++i) {
    result[i] = 0;
    for (int64_t j = 0; j < frame[1]; ++j) {
      int64_t join[] = {1, (int64_t)&result[i], (int64_t)&pieces[i * frame[1] + j],
                        (int64_t)&result[i]};
      call->services[HEDDLE_SERVICE_STRING_CONCAT](call, join);
    }
  }
  return call->status;
}

TEST(Values, StringsAreMadeWhileRunning) {
  Executable executable(tensorOf("x", HEDDLE_STRING), tensorOf("y", HEDDLE_STRING), splitAndJoin);
  const heddle_text_constant_t comma = {",", 1};
  executable.strings = &comma;
  executable.string_count = 1;
  TestSession session(executable);
  std::vector<heddle_string_t> texts = {{"a,bc,,d", 7}, {"", 0}, {"x", 1}};
  for (int round = 0; round < 3; ++round) {
    std::vector<heddle_tensor_t> outputs(1);
    ASSERT_EQ(session.run({tensorOver(texts, {3})}, outputs), "");
    auto *found = static_cast<heddle_string_t *>(outputs[0].data);
    EXPECT_EQ(std::string(found[0].data, found[0].size), ",abcd");
    EXPECT_EQ(std::string(found[1].data, found[1].size), ",");
    heddle_tensor_release(&outputs[0]);
  }
}

TEST(Strings, HaveOneNumberEach) {
  const heddle_text_constant_t constants[] = {{"zero", 4}, {"", 0}};
  heddle_strings_t strings = {};
  strings.constants = constants;
  strings.constant_count = 2;
  std::vector<std::string> texts;
  for (int i = 0; i < 5000; ++i)
    texts.push_back(std::to_string(i % 2500));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(heddle_strings_number(&strings, "zero", 4), 0);
    EXPECT_EQ(heddle_strings_number(&strings, "", 0), 1);
    for (int i = 0; i < 5000; ++i)
      ASSERT_EQ(heddle_strings_number(&strings, texts[i].data(), texts[i].size()), 2 + i % 2500);
    heddle_string_t text = heddle_strings_text(&strings, 2 + 77);
    EXPECT_EQ(std::string(text.data, text.size), "77");
    heddle_strings_reset(&strings);
    EXPECT_EQ(strings.added_count, 0);
  }
  heddle_strings_free(&strings);
}

std::string inCase(const std::string &text, bool isUpper) {
  std::string result(2 * text.size(), 0);
  char *end = heddle_text_in_case(result.data(), {text.data(), text.size()}, isUpper);
  return result.substr(0, end - result.data());
}

TEST(Strings, ChangeTheirCase) {
  EXPECT_EQ(inCase("Grün 7 ŻÓŁĆ Ÿ Ψυχή Жизнь", true), "GRÜN 7 ŻÓŁĆ Ÿ ΨΥΧΉ ЖИЗНЬ");
  EXPECT_EQ(inCase("GRÜN × ŻÓŁĆ Ÿ ΨΥΧΉ ЖИЗНЬ Ա Ａ", false), "grün × żółć ÿ ψυχή жизнь ա ａ");
  EXPECT_EQ(inCase("a\xff\xc3z\xe2\x82", true), "A\xff\xc3Z\xe2\x82");
}

} // namespace
