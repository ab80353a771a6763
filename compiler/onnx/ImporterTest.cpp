// The importer on small models made here: what it refuses, with which message, and what it makes.

#include "compiler/onnx/Importer.h"
#include "compiler/graph/Graph.h"

#include "onnx.pb.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace mlir;
using namespace heddle;

namespace {

using Proto = ::onnx::TensorProto;

/// A model with one f32 input x and one output y, to which tests add nodes.
/// A negative size is one that the model does not know.
::onnx::ModelProto emptyModel(std::vector<int64_t> shape = {2, 3}, int64_t opset = 17) {
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  auto *input = model.mutable_graph()->add_input();
  input->set_name("x");
  auto *type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(Proto::FLOAT);
  type->mutable_shape();
  for (int64_t size : shape)
    type->mutable_shape()->add_dim()->set_dim_value(size);
  model.mutable_graph()->add_output()->set_name("y");
  return model;
}

::onnx::NodeProto *addNode(::onnx::ModelProto &model, const std::string &op,
                           std::vector<std::string> inputs, const std::string &output) {
  auto *node = model.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name("n_" + output);
  for (const auto &input : inputs)
    node->add_input(input);
  node->add_output(output);
  return node;
}

Proto *addInitializer(::onnx::ModelProto &model, const std::string &name, std::vector<int64_t> dims,
                      std::vector<int64_t> values) {
  auto *tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(Proto::INT64);
  for (int64_t dim : dims)
    tensor->add_dims(dim);
  for (int64_t value : values)
    tensor->add_int64_data(value);
  return tensor;
}

struct Result {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  std::string message, text;
  ErrorCode code = ErrorCode::Internal;

  void take(llvm::Expected<OwningOpRef<ModuleOp>> imported) {
    if (imported) {
      module = std::move(*imported);
      llvm::raw_string_ostream stream(text);
      module->print(stream);
      return;
    }
    llvm::handleAllErrors(imported.takeError(), [&](const heddle::Error &error) {
      message = error.message;
      code = error.code;
    });
  }
};

std::unique_ptr<Result> importBytes(const std::string &bytes,
                                    heddle::onnx::ImportOptions options = {}) {
  auto result = std::make_unique<Result>();
  result->take(heddle::onnx::importModelFromBytes(result->context, {bytes.data(), bytes.size()},
                                                  "m.onnx", options));
  return result;
}
std::unique_ptr<Result> import(const ::onnx::ModelProto &model,
                               heddle::onnx::ImportOptions options = {}) {
  return importBytes(model.SerializeAsString(), options);
}

void expectRefused(const Result &result, const std::string &part,
                   ErrorCode code = ErrorCode::Refused) {
  EXPECT_FALSE(result.module);
  EXPECT_NE(result.message.find(part), std::string::npos) << result.message;
  EXPECT_EQ(result.code, code) << result.message;
}

void expectText(const Result &result, const std::string &part) {
  ASSERT_TRUE(result.module) << result.message;
  EXPECT_NE(result.text.find(part), std::string::npos) << result.text;
}

} // namespace

TEST(BadFile, tells_what_it_looks_like) {
  expectRefused(*importBytes(""), "m.onnx: error: the file is empty");
  expectRefused(*importBytes("PK\x03\x04 and more"), "it looks like a zip archive");
  expectRefused(*importBytes("GGUF...."), "it looks like a GGUF model");
  expectRefused(*importBytes(std::string("\xff\x00\x81garbage", 10)), "not a whole protobuf");
  auto model = emptyModel();
  addNode(model, "Relu", {"x"}, "y");
  std::string bytes = model.SerializeAsString();
  for (size_t size = 1; size < bytes.size(); ++size)
    EXPECT_FALSE(importBytes(bytes.substr(0, size))->module) << size;
}

TEST(BadFile, a_missing_file_or_a_folder_is_no_model) {
  Result result;
  result.take(heddle::onnx::importModel(result.context, "/does/not/exist.onnx"));
  expectRefused(result, "/does/not/exist.onnx: error: cannot read the model", ErrorCode::Usage);
  Result folder;
  folder.take(heddle::onnx::importModel(folder.context, "/"));
  expectRefused(folder, "it is a folder, but a regular file is needed", ErrorCode::Usage);
}

TEST(BadGraph, all_problems_are_told_at_once) {
  auto model = emptyModel();
  addNode(model, "Convv", {"x"}, "a");
  addNode(model, "Relu", {"nowhere"}, "b");
  addNode(model, "Add", {"a", "b"}, "y");
  auto result = import(model);
  expectRefused(*result, "m.onnx: node 'n_a' (Convv): error: unknown op 'Convv'\n"
                         "note: did you mean 'Conv'?");
  expectRefused(*result, "node 'n_b' (Relu): error: input 'nowhere' is not made");
  EXPECT_EQ(result->message.find("n_y"), std::string::npos) << result->message;
}

TEST(Graph, nodes_may_stand_in_any_order) {
  auto model = emptyModel();
  addNode(model, "Abs", {"b"}, "y");
  addNode(model, "Neg", {"a"}, "b");
  addNode(model, "Relu", {"x"}, "a");
  expectText(*import(model), "graph.abs");
}

TEST(Graph, a_subgraph_needs_what_it_takes_from_outside) {
  auto model = emptyModel();
  auto *node = addNode(model, "If", {"flag"}, "y");
  for (const char *branch : {"then_branch", "else_branch"}) {
    auto *attribute = node->add_attribute();
    attribute->set_name(branch);
    attribute->set_type(::onnx::AttributeProto::GRAPH);
    auto *inner = attribute->mutable_g()->add_node();
    inner->set_op_type(branch[0] == 't' ? "Abs" : "Neg");
    inner->add_input("a");
    inner->add_output("inner");
    attribute->mutable_g()->add_output()->set_name("inner");
  }
  addNode(model, "Relu", {"x"}, "a");
  addNode(model, "Cast", {"sum"}, "flag")->add_attribute()->set_name("to");
  auto *to = model.mutable_graph()->mutable_node(2)->mutable_attribute(0);
  to->set_type(::onnx::AttributeProto::INT);
  to->set_i(Proto::BOOL);
  addNode(model, "ReduceMax", {"x"}, "sum");
  expectText(*import(model), "graph.if");
}

TEST(Graph, an_output_may_be_listed_twice) {
  auto model = emptyModel();
  addNode(model, "Relu", {"x"}, "y");
  model.mutable_graph()->add_output()->set_name("y");
  expectText(*import(model), "graph.name = \"y\"}, tensor<2x3xf32> {graph.name = \"y\"}");
}

static ::onnx::SparseTensorProto *addSparse(::onnx::ModelProto &model, std::vector<int64_t> indices,
                                            std::vector<int64_t> shape) {
  auto *sparse = model.mutable_graph()->add_sparse_initializer();
  sparse->add_dims(2);
  sparse->add_dims(3);
  auto *values = sparse->mutable_values();
  values->set_name("s");
  values->set_data_type(Proto::FLOAT);
  values->add_dims(2);
  values->add_float_data(5);
  values->add_float_data(7);
  auto *places = sparse->mutable_indices();
  places->set_data_type(Proto::INT64);
  for (int64_t size : shape)
    places->add_dims(size);
  for (int64_t index : indices)
    places->add_int64_data(index);
  return sparse;
}

TEST(Initializer, a_sparse_one_is_made_dense) {
  for (bool isFlat : {false, true}) {
    auto model = emptyModel();
    isFlat ? addSparse(model, {1, 5}, {2}) : addSparse(model, {0, 1, 1, 2}, {2, 2});
    addNode(model, "Add", {"x", "s"}, "y");
    expectText(*import(model), "dense<[[0.000000e+00, 5.000000e+00, 0.000000e+00], "
                               "[0.000000e+00, 0.000000e+00, 7.000000e+00]]>");
  }
}

TEST(Initializer, a_sparse_one_is_checked) {
  auto refused = [](std::vector<int64_t> indices, std::vector<int64_t> shape, const char *message,
                    int64_t rows = 2, ErrorCode code = ErrorCode::Refused) {
    auto model = emptyModel();
    addSparse(model, std::move(indices), std::move(shape))->set_dims(0, rows);
    addNode(model, "Add", {"x", "s"}, "y");
    expectRefused(*import(model), message, code);
  };
  refused({1, 6}, {2}, "initializer 's': error: index 6 is outside of [0, 6)");
  refused({-1, 5}, {2}, "index -1 is outside of [0, 6)");
  refused({0, 3, 1, 2}, {2, 2}, "index 3 is outside of [0, 3)");
  refused({5, 1}, {2}, "the indices must ascend");
  refused({1, 1}, {2}, "the indices must ascend");
  refused({1, 2, 3}, {3}, "the indices INT64 of shape [values] or [values, 2]");
  refused({1, 2}, {2, 1}, "the indices INT64 of shape [values] or [values, 2]");
  refused({1, 5}, {2}, "elements, but at most", int64_t(1) << 40, ErrorCode::Limit);
}

TEST(BadGraph, names_order_and_domains) {
  auto cycle = emptyModel();
  addNode(cycle, "Add", {"x", "y"}, "a");
  addNode(cycle, "Relu", {"a"}, "y");
  expectRefused(*import(cycle), "input 'y' is made by node 'n_y', which is part of a cycle");
  auto twice = emptyModel();
  addNode(twice, "Relu", {"x"}, "y");
  addNode(twice, "Abs", {"x"}, "y");
  expectRefused(*import(twice), "'y' is defined twice");
  auto domain = emptyModel();
  addNode(domain, "Relu", {"x"}, "y")->set_domain("org.example");
  expectRefused(*import(domain), "unknown domain 'org.example'");
  auto future = emptyModel({2, 3}, 99);
  addNode(future, "Relu", {"x"}, "y");
  expectRefused(*import(future), "opset 99 of domain 'ai.onnx', but only 1 to 27");
  expectRefused(*import(emptyModel()), "output 'y': error: input 'y' is not made");
}

TEST(BadGraph, a_wrong_shape_names_its_node) {
  auto model = emptyModel();
  addInitializer(model, "shape", {2}, {4, 2});
  addNode(model, "Reshape", {"x", "shape"}, "y");
  expectRefused(*import(model), "node 'n_y' (Reshape): error: input of shape [2, 3] cannot be");
  auto product = emptyModel();
  addNode(product, "MatMul", {"x", "x"}, "y");
  expectRefused(*import(product), "(MatMul): error: the left operand has 3 columns, but the right "
                                  "one has 2 rows");
}

TEST(BadGraph, ranks_that_nothing_holds) {
  auto wide = emptyModel(std::vector<int64_t>(17, 1));
  addNode(wide, "Relu", {"x"}, "y");
  expectRefused(*import(wide), "'x' has rank 17, but at most 16 is supported");
  auto split = emptyModel({});
  addNode(split, "Split", {"x"}, "y");
  expectRefused(*import(split), "an operand has rank 0, but needs rank 1 or more");
}

TEST(BadTensor, sizes_and_fields) {
  auto with = [](auto change) {
    auto model = emptyModel();
    change(*addInitializer(model, "c", {2}, {1, 2}));
    addNode(model, "Relu", {"x"}, "y");
    return import(model);
  };
  expectRefused(*with([](Proto &c) { c.set_raw_data(std::string(16, 0)); }), "more than one field");
  expectRefused(*with([](Proto &c) {
    c.clear_int64_data();
    c.set_raw_data("abc");
  }),
                "initializer 'c': error: 'raw_data' has 3 bytes, but the shape needs 16");
  expectRefused(*with([](Proto &c) { c.set_dims(0, -2); }), "must not be negative");
  expectRefused(*with([](Proto &c) {
    c.set_dims(0, INT64_MAX);
    c.add_dims(INT64_MAX);
  }),
                "more elements than can be counted");
  expectRefused(*with([](Proto &c) { c.add_int64_data(3); }), "has 3 entries");
  expectRefused(*with([](Proto &c) { c.set_data_type(77); }), "tensors of number 77");
}

TEST(BadTensor, external_data_stays_in_the_folder) {
  auto folder = std::filesystem::temp_directory_path() / "heddle-importer-test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "data.bin") << std::string(1024, '\1');
  auto run = [&](const std::string &location, const std::string &offset) {
    auto model = emptyModel();
    auto *tensor = addInitializer(model, "c", {100}, {});
    tensor->set_data_location(::onnx::TensorProto_DataLocation_EXTERNAL);
    for (auto [key, value] : {std::pair<std::string, std::string>{"location", location},
                              {"offset", offset},
                              {"length", "800"}}) {
      auto *entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    addNode(model, "Identity", {"c"}, "y");
    std::ofstream(folder / "m.onnx") << model.SerializeAsString();
    auto result = std::make_unique<Result>();
    result->take(heddle::onnx::importModel(result->context, (folder / "m.onnx").string()));
    return result;
  };
  expectText(*run("data.bin", "8"), "tensor<100xi64>");
  expectRefused(*run("data.bin", "500"), "but 'data.bin' has only 1024");
  expectRefused(*run("data.bin", "-1"), "it must be a number that is not negative");
  expectRefused(*run("none.bin", "0"), "does not exist");
  expectRefused(*run("../data.bin", "0"), "lies outside of the model's folder");
  expectRefused(*run("/etc/passwd", "0"), "lies outside of the model's folder");
  std::filesystem::create_symlink("/etc/passwd", folder / "link.bin");
  expectRefused(*run("link.bin", "0"), "lies outside of the model's folder");
  std::filesystem::remove_all(folder);
}

TEST(BadInput, numbers_maps_and_options) {
  auto number = emptyModel();
  number.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      Proto::COMPLEX64);
  addNode(number, "Identity", {"x"}, "y");
  expectRefused(*import(number), "input 'x': error: inputs of COMPLEX64 are not supported");
  auto map = emptyModel();
  auto *type = map.mutable_graph()->mutable_input(0)->mutable_type();
  type->mutable_map_type();
  addNode(map, "Identity", {"x"}, "y");
  expectRefused(*import(map), "the values of a map must be tensors of a supported element type");
  type->mutable_sequence_type()->mutable_elem_type()->mutable_map_type();
  expectRefused(*import(map), "sequences and optionals of what is no tensor are not supported");
  auto model = emptyModel();
  addNode(model, "Relu", {"x"}, "y");
  heddle::onnx::ImportOptions options;
  ASSERT_FALSE(heddle::onnx::addShapeOption(options, "z=1x2"));
  expectRefused(*import(model, options), "no input or size 'z'");
  auto open = emptyModel();
  auto *dims = open.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  dims->mutable_shape()->clear_dim();
  dims->mutable_shape()->add_dim();
  dims->mutable_shape()->add_dim()->set_dim_param("n");
  addNode(open, "Relu", {"x"}, "y");
  for (const char *size : {"x.0=2", "x.1=3"}) {
    heddle::onnx::ImportOptions fixed;
    ASSERT_FALSE(heddle::onnx::addShapeOption(fixed, size));
    expectText(*import(open, fixed), size[2] == '0' ? "tensor<2x?xf32" : "tensor<?x3xf32");
  }
  heddle::onnx::ImportOptions none;
  ASSERT_FALSE(heddle::onnx::addShapeOption(none, "x.2=2"));
  expectRefused(*import(open, none), "its inputs: x; its sizes that are open: x.0, n");
}

TEST(Limits, gigabytes_are_not_allocated) {
  auto model = emptyModel();
  addInitializer(model, "shape", {2}, {100000, 1000000});
  addNode(model, "ConstantOfShape", {"shape"}, "y");
  expectText(*import(model), "graph.broadcast");
}

TEST(Limits, nested_functions) {
  auto model = emptyModel();
  for (int i = 0; i < 3000; ++i) {
    auto *function = model.add_functions();
    function->set_name("f" + std::to_string(i));
    function->set_domain("local");
    function->add_input("a");
    function->add_output("b");
    function->add_opset_import()->set_version(17);
    auto *node = function->add_node();
    node->set_op_type(i == 2999 ? "Relu" : "f" + std::to_string(i + 1));
    node->set_domain(i == 2999 ? "" : "local");
    node->add_input("a");
    node->add_output("b");
  }
  addNode(model, "f2990", {"x"}, "y")->set_domain("local");
  expectText(*import(model), "graph.max");
  model.mutable_graph()->mutable_node(0)->set_op_type("f0");
  expectRefused(*import(model), "nested deeper than 64", ErrorCode::Limit);
}

TEST(Import, named_sizes_and_names) {
  auto model = emptyModel({-1, 3});
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("batch size");
  addInitializer(model, "shape", {1}, {-1});
  addNode(model, "Reshape", {"x", "shape"}, "y");
  auto result = import(model);
  expectText(*result, "#graph.dims<\"batch_size\", 3>");
  expectText(*result, "tensor<?xf32, #graph.dims<\"3*batch_size\">>");
  expectText(*result, "graph.name = \"y\"");
  expectText(*result, "graph.model = \"m.onnx\"");
  heddle::onnx::ImportOptions options;
  ASSERT_FALSE(heddle::onnx::addShapeOption(options, "x=4x?"));
  expectText(*import(model, options), "tensor<12xf32>");
}

TEST(Import, a_shape_walk_folds_into_the_type) {
  auto model = emptyModel({-1, 3});
  addNode(model, "Shape", {"x"}, "s");
  addInitializer(model, "zero", {1}, {0});
  addNode(model, "Gather", {"s", "zero"}, "rows");
  addInitializer(model, "six", {1}, {-1});
  addNode(model, "Concat", {"rows", "six"}, "shape")->add_attribute();
  auto *axis = model.mutable_graph()->mutable_node(2)->mutable_attribute(0);
  axis->set_name("axis");
  axis->set_type(::onnx::AttributeProto::INT);
  axis->set_i(0);
  addNode(model, "Reshape", {"x", "shape"}, "y");
  expectText(*import(model), "graph.dims<\"x.0\", 3>");
}

TEST(Import, strings_are_numbers_of_a_table) {
  auto model = emptyModel({1, 3});
  auto *names = model.mutable_graph()->add_initializer();
  names->set_name("names");
  names->set_data_type(Proto::STRING);
  names->add_dims(3);
  for (const char *name : {"cat", "dog", "cat"})
    names->add_string_data(name);
  addNode(model, "ArgMax", {"x"}, "best");
  addNode(model, "Gather", {"names", "best"}, "y");
  auto result = import(model);
  expectText(*result, "graph.strings = [\"cat\", \"dog\"]");
  expectText(*result, "dense<[0, 1, 0]> : tensor<3xi64>> : tensor<3x!graph.string>");
  addNode(model, "Add", {"names", "names"}, "z");
  expectRefused(*import(model),
                "node 'n_z' (Add): error: input 0 ('A') has element type STRING, but ");
}

TEST(Import, narrow_floats_are_bits) {
  auto model = emptyModel({2, 3}, 25);
  auto setType = [](::onnx::NodeProto *node, int type) {
    auto *to = node->add_attribute();
    to->set_name("to");
    to->set_type(::onnx::AttributeProto::INT);
    to->set_i(type);
  };
  setType(addNode(model, "Cast", {"x"}, "four"), 23);
  setType(addNode(model, "Cast", {"x"}, "scale"), 24);
  setType(addNode(model, "Cast", {"four"}, "y"), 1);
  auto result = import(model);
  expectText(*result, "-> tensor<2x3x!graph.float4>");
  expectText(*result, "-> tensor<2x3x!graph.scale8>");
  addNode(model, "Neg", {"scale"}, "z");
  expectRefused(*import(model), "has element type FLOAT8E8M0, but Neg takes FLOAT, ");
}

TEST(Import, sequences_know_their_rank) {
  auto model = emptyModel();
  addNode(model, "SequenceConstruct", {"x", "x"}, "both");
  addInitializer(model, "last", {}, {-1});
  addNode(model, "SequenceAt", {"both", "last"}, "y");
  expectText(*import(model), "tensor<!graph.list<\"sequence\", f32, 2>>");
  expectText(*import(model), "tensor<?x?xf32, #graph.dims<\"$taken.0\", \"$taken.1\">>");
  addNode(model, "SequenceEmpty", {}, "none");
  addNode(model, "SequenceAt", {"none", "last"}, "z");
  expectRefused(*import(model), "node 'n_z' (SequenceAt): error: the rank of the tensors in the "
                                "sequence is not known\nnote: declare the shape of 'z'");
  auto wrong = emptyModel();
  addNode(wrong, "SequenceLength", {"x"}, "y");
  expectRefused(*import(wrong), "input 0 is f32, but must be a sequence or an optional");
}

static std::unique_ptr<Result> importPattern(const std::string &pattern) {
  auto model = emptyModel();
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      Proto::STRING);
  model.mutable_opset_import(0)->set_version(20);
  auto *attribute = addNode(model, "RegexFullMatch", {"x"}, "y")->add_attribute();
  attribute->set_name("pattern");
  attribute->set_type(::onnx::AttributeProto::STRING);
  attribute->set_s(pattern);
  return import(model);
}

TEST(Import, patterns_are_automata) {
  expectText(*importPattern("(a|b)*c{2,3}[^x-z]\\d\\b$"), "graph.string_match");
  expectRefused(*importPattern("a(b"), "the pattern 'a(b' cannot be used: a '(' is not closed");
  expectRefused(*importPattern("a**"), "a repetition is repeated at byte 3");
  expectRefused(*importPattern("*a"), "there is nothing to repeat at byte 0");
  expectRefused(*importPattern("[z-"), "a '[' is not closed");
  expectRefused(*importPattern("(?=a)"), "this kind of group is not known");
  expectRefused(*importPattern("a{9999}"), "above 1000");
  expectRefused(*importPattern("((((a{99}){99}){99}){99})"), "it is too large");
  expectRefused(*importPattern("(a|b)*a(a|b){20}"), "needs more than 5000 states");
}

TEST(Table, lists_every_op_once) {
  std::string table = heddle::onnx::supportTable();
  EXPECT_NE(table.find("| Conv | ai.onnx | 1-27 |"), std::string::npos);
  EXPECT_NE(table.find("| ZipMap | ai.onnx.ml |"), std::string::npos);
}
