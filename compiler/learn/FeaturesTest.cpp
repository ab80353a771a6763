// FeaturesTest: what is a feature and what is not; files of records as features.

#include "compiler/learn/Features.h"
#include "compiler/learn/Corpus.h"
#include "compiler/learn/Vocabulary.h"
#include "compiler/records/GroupKey.h"
#include "compiler/warehouse/Warehouse.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sqlite3.h>

using namespace mlir;
using namespace heddle;
using Json = nlohmann::json;
using records::Record;
using records::Records;

namespace {

/// A convolution's worth of ops around a product, whose names and sizes are filled in.
constexpr StringLiteral kText = R"(
func.func @main(%x: tensor<MxKxf32>, %y: tensor<MxNxf32>) -> tensor<MxNxf32> {
  %w = graph.constant dense<1.0> : tensor<KxNxf32>
  %g = graph.group "NAME" {mechanism = "contraction"} : tensor<MxNxf32> {
    %NAMEd = graph.matmul %x, %w
      : (tensor<MxKxf32>, tensor<KxNxf32>) -> tensor<MxNxf32> loc("NAME")
    %NAMEe = graph.exp %NAMEd : tensor<MxNxf32>
    %NAMEf = graph.add %NAMEe, %y : tensor<MxNxf32>
    graph.yield %NAMEf : tensor<MxNxf32>
  }
  return %g : tensor<MxNxf32>
})";

class Features : public testing::Test {
protected:
  Features()
      : cards((context.loadDialect<graph::GraphDialect, func::FuncDialect>(),
               llvm::cantFail(warehouse::Warehouse::load(context)))) {
    SmallString<128> folder;
    llvm::sys::fs::createUniqueDirectory("heddle-features", folder);
    llvm::sys::path::append(folder, "records.db");
    path = folder.str();
  }
  ~Features() override { llvm::sys::fs::remove_directories(llvm::sys::path::parent_path(path)); }

  graph::GroupOp groupIn(const std::string &text) {
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    EXPECT_TRUE(modules.back()) << text;
    graph::GroupOp found;
    if (modules.back())
      modules.back()->walk([&](graph::GroupOp group) { found = group; });
    return found;
  }
  graph::GroupOp product(StringRef m = "100", StringRef k = "64", StringRef n = "40",
                         StringRef name = "dense") {
    std::string text = kText.str();
    std::pair<StringRef, std::string> holes[] = {{"MxK", (m + "x" + k).str()},
                                                 {"MxN", (m + "x" + n).str()},
                                                 {"KxN", (k + "x" + n).str()},
                                                 {"NAME", name.str()}};
    for (auto &[hole, filling] : holes)
      for (size_t at; (at = text.find(hole.data(), 0, hole.size())) != std::string::npos;)
        text.replace(at, hole.size(), filling);
    return groupIn(text);
  }

  static double at(ArrayRef<double> values, StringRef name) {
    std::vector<std::string> names = learn::candidateNames();
    auto found = llvm::find(names, name);
    EXPECT_NE(found, names.end()) << name.str();
    return found == names.end() ? NAN : values[found - names.begin()];
  }

  /// A trial of a product with these knobs.
  Record trial(graph::GroupOp group, int64_t m, double seconds) {
    Record made;
    made.situation = {records::keyOf(group).hash, "cpu", 1};
    made.machine = "znver4, 2 threads";
    made.nest = "m:p";
    made.base = "none";
    made.card = "matmul";
    made.cardHash = cards.find("matmul")->hash;
    made.knobs = {{"m", m}, {"n", 32}};
    made.seconds = seconds;
    made.speedup = 1e-3 / seconds;
    return made;
  }
  void write(ArrayRef<Record> trials, graph::GroupOp group, bool isDescribed = true) {
    auto records = llvm::cantFail(Records::open(path, Records::Access::Write));
    records::GroupKey key = records::keyOf(group);
    llvm::cantFail(records->describe(key.hash, key.text));
    llvm::cantFail(records->addOrigin(key.hash, "m.onnx", 2));
    for (const Record &record : trials) {
      llvm::cantFail(records->add(record));
      if (isDescribed)
        llvm::cantFail(records->addMachine(record, program::Machine()));
    }
  }
  std::string problemOf(const learn::Measured &measured) {
    auto json = learn::featuresJson(path, measured);
    return json ? "" : llvm::toString(json.takeError());
  }
  void execute(const char *sql) {
    sqlite3 *database = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }

  MLIRContext context;
  warehouse::Warehouse cards;
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::string path;
};

TEST_F(Features, KnowAllOpsMechanismsAndKnobs) {
  std::set<StringRef> ops(learn::opNames().begin(), learn::opNames().end());
  EXPECT_EQ(ops.size(), learn::opNames().size());
  for (RegisteredOperationName op : context.getRegisteredOperations())
    if (op.getDialectNamespace() == graph::GraphDialect::getDialectNamespace())
      EXPECT_TRUE(ops.count(op.stripDialect()))
          << op.getStringRef().str() << " is to be added at the end of opNames";
  for (const mechanism::Mechanism *each : mechanism::all())
    EXPECT_GT(learn::indexOf(learn::mechanismNames(), each->name), 0u) << each->name.str();
  for (const warehouse::Card &card : cards.cards())
    if (!card.isOfThreads()) // the model is of the machine itself
      for (const warehouse::Knob &knob : card.knobs)
        EXPECT_TRUE(llvm::is_contained(learn::knobNames(), knob.name))
            << card.name << " " << knob.name;
}

TEST_F(Features, DoNotDependOnNames) {
  learn::GroupFeatures one = learn::featuresOf(product()),
                       other = learn::featuresOf(product("100", "64", "40", "another"));
  EXPECT_EQ(one.ops, other.ops);
  EXPECT_EQ(one.nodes, other.nodes);
  EXPECT_EQ(one.edges, other.edges);
  EXPECT_NE(one.nodes, learn::featuresOf(product("101")).nodes);
}

TEST_F(Features, AreThoseOfTheTextThatRecordsKeep) {
  graph::GroupOp group = product();
  graph::GroupOp read = groupIn(records::keyOf(group).text);
  learn::GroupFeatures one = learn::featuresOf(group), other = learn::featuresOf(read);
  EXPECT_EQ(one.ops, other.ops);
  EXPECT_EQ(one.nodes, other.nodes);
  EXPECT_EQ(one.edges, other.edges);
  learn::Candidate candidate{"contraction", true, {{"m", 8}, {"n", 48}}};
  EXPECT_EQ(learn::featuresOf(group, candidate, {}), learn::featuresOf(read, candidate, {}));
}

TEST_F(Features, AreAGraph) {
  learn::GroupFeatures features = learn::featuresOf(product());
  ASSERT_EQ(features.ops.size(), 6u); // x, w, y, then the ops
  std::vector<std::string> names;
  for (int64_t op : features.ops)
    names.push_back(learn::opNames()[op].str());
  EXPECT_EQ(names, (std::vector<std::string>{"input", "input", "input", "matmul", "exp", "add"}));
  EXPECT_EQ(features.edges,
            (std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {1, 3}, {3, 4}, {4, 5}, {2, 5}}));
  auto node = [&](size_t number, StringRef name) {
    return features
        .nodes[number][llvm::find(learn::nodeNames(), name) - learn::nodeNames().begin()];
  };
  EXPECT_EQ(node(1, "is_constant"), 1);
  EXPECT_EQ(node(0, "is_constant"), 0);
  EXPECT_EQ(node(3, "is_product"), 1);
  EXPECT_NEAR(node(3, "combined"), std::log2(65), 1e-4);
  EXPECT_NEAR(node(3, "flops"), std::log2(1 + 2 * 100 * 64 * 40), 1e-4);
  EXPECT_EQ(node(5, "is_result"), 1);
  EXPECT_EQ(node(4, "is_result"), 0);
  EXPECT_NEAR(node(5, "dim_last"), std::log2(41), 1e-4);
}

TEST_F(Features, SayWhatTilesWaste) {
  program::Machine machine; // 16 lanes, 32 registers
  learn::Candidate candidate{"contraction", true, {{"m", 8}, {"n", 48}}};
  std::vector<double> values = learn::featuresOf(product(), candidate, machine);
  ASSERT_EQ(values.size(), learn::candidateNames().size());
  EXPECT_NEAR(at(values, "rows_fill"), 100.0 / 104, 1e-4);
  EXPECT_NEAR(at(values, "columns_fill"), 40.0 / 48, 1e-4);
  EXPECT_EQ(at(values, "lanes_fill"), 1);
  EXPECT_NEAR(at(values, "register_use"), 28.0 / 32, 1e-4);
  EXPECT_EQ(at(values, "register_spill"), 0);
  EXPECT_NEAR(at(values, "loads_per_product"), 11.0 / 24, 1e-4);
  EXPECT_NEAR(at(values, "padded_flops"),
              std::log2(1 + (2.0 * 100 * 64 * 40 + 2 * 100 * 40) * 104 / 100 * 48 / 40), 1e-3);
  candidate.knobs["m"] = 14;
  EXPECT_GT(at(learn::featuresOf(product(), candidate, machine), "register_spill"), 0);
  candidate.knobs = {{"m", 8}, {"n", 8}}; // half of a vector
  EXPECT_EQ(at(learn::featuresOf(product(), candidate, machine), "lanes_fill"), 0.5);
}

TEST_F(Features, CountTasksAsTheLoweringDoes) {
  program::Machine machine;
  machine.workers = 2;
  auto tasks = [&](int64_t tiles) {
    learn::Candidate candidate{"contraction", true, {{"m", 8}, {"n", 16}, {"tiles", tiles}}};
    std::vector<double> values = learn::featuresOf(product("800", "64", "160"), candidate, machine);
    return std::exp2(at(values, "tasks")) - 1;
  };
  // 100 tiles of rows; all 10 panels are one chunk, as 100 - 16 > 0.
  EXPECT_NEAR(tasks(10), 10, 1e-2);
  EXPECT_NEAR(tasks(1), 100, 1e-1);
  EXPECT_NEAR(tasks(0), 34, 1e-1); // tasks of floor(100 / 32) tiles each
}

TEST_F(Features, AreWrittenForRecords) {
  graph::GroupOp group = product();
  Record failed = trial(group, 3, 0);
  failed.failure = "it crashed";
  Record unknown = trial(group, 4, 1e-3);
  unknown.card = "mine";
  write({trial(group, 8, 2e-3), trial(group, 6, 1e-3), failed, unknown}, group);
  auto text = learn::featuresJson(path, {"cpu", std::nullopt, std::nullopt});
  ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
  Json json = Json::parse(*text);
  EXPECT_EQ(json["version"], learn::kFeaturesVersion);
  EXPECT_EQ(json["threads"], 1);
  ASSERT_EQ(json["groups"].size(), 1u);
  Json &found = json["groups"][0];
  EXPECT_EQ(found["models"], Json({"m.onnx"}));
  ASSERT_EQ(found["candidates"].size(), 2u);
  EXPECT_EQ(found["candidates"][0]["knobs"], Json({{"m", 8}, {"n", 32}}));
  EXPECT_EQ(found["candidates"][0]["seconds"], 2e-3);
  std::vector<double> features = found["candidates"][0]["features"];
  program::Machine machine;
  machine.workers = 1;
  EXPECT_EQ(features,
            learn::featuresOf(group, {"contraction", true, {{"m", 8}, {"n", 32}}}, machine));
  EXPECT_EQ(json["left_out"]["candidates that failed"], 1);
  EXPECT_EQ(json["left_out"]["candidates of unknown cards"], 1);
}

TEST_F(Features, AreThoseOfProgramsThatDiffer) {
  graph::GroupOp group = product();
  std::vector<Record> trials;
  for (int64_t threads : {1, 2})
    for (int64_t chunk : {512, 4096, 8192}) {
      Record made = trial(group, 8, 1e-3);
      made.situation.threads = threads;
      made.card = "elementwise";
      made.cardHash = cards.find("elementwise")->hash;
      made.base = "elementwise@" + made.cardHash + " chunk=4096";
      made.knobs = {{"chunk", chunk}};
      trials.push_back(made);
    }
  write(trials, group);
  for (int64_t threads : {1, 2}) {
    auto text = learn::featuresJson(path, {"cpu", threads, std::nullopt});
    ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
    Json found = Json::parse(*text)["groups"][0]["candidates"];
    ASSERT_EQ(found.size(), threads == 1 ? 1u : 3u);
    EXPECT_EQ(found[0]["knobs"]["chunk"], 4096) << "the default comes first";
  }
}

TEST_F(Features, TellPrecisionsApart) {
  graph::GroupOp group = product();
  Record rounded = trial(group, 8, 1e-3);
  rounded.isShort = true;
  write({trial(group, 8, 2e-3), rounded}, group);
  auto text = learn::featuresJson(path, {"cpu", 1, std::nullopt});
  ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
  Json json = Json::parse(*text), found = json["groups"][0]["candidates"];
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(json["candidate_features"].back(), "has_bf16");
  for (bool isShort : {false, true}) {
    EXPECT_EQ(found[size_t(isShort)]["precision"], isShort ? "bf16" : "f32");
    EXPECT_EQ(found[size_t(isShort)]["features"].back(), isShort ? 1 : 0);
    found[size_t(isShort)]["features"].erase(learn::candidateNames().size() - 1);
  }
  EXPECT_EQ(found[0]["features"], found[1]["features"]) << "old features are as they were";
}

TEST_F(Features, TakeDynamicSizesAsMeasured) {
  std::string text = kText.str();
  for (auto [hole, filling] :
       {std::pair("tensor<MxKxf32>", "tensor<?x64xf32, #graph.dims<\"b\", 64>>"),
        std::pair("tensor<MxNxf32>", "tensor<?x40xf32, #graph.dims<\"b\", 40>>"),
        std::pair("KxN", "64x40"), std::pair("NAME", "dense")})
    for (size_t at; (at = text.find(hole)) != std::string::npos;)
      text.replace(at, StringRef(hole).size(), filling);
  graph::GroupOp group = groupIn(text);
  ASSERT_TRUE(group);
  EXPECT_FALSE(estimate::hasConstantSizes(group));
  Record record = trial(group, 8, 1e-3);
  record.sizes = "100";
  write({record}, group);
  auto written = learn::featuresJson(path, {"cpu", 1, std::nullopt});
  ASSERT_TRUE(bool(written)) << llvm::toString(written.takeError());
  Json json = Json::parse(*written);
  ASSERT_EQ(json["groups"].size(), 1u);
  std::vector<double> features = json["groups"][0]["candidates"][0]["features"];
  program::Machine machine;
  machine.workers = 1;
  EXPECT_EQ(features,
            learn::featuresOf(product(), {"contraction", true, {{"m", 8}, {"n", 32}}}, machine));
}

TEST_F(Features, RefuseRecordsOfAnotherMachine) {
  graph::GroupOp group = product();
  write({trial(group, 8, 1e-3)}, group);
  EXPECT_EQ(problemOf({"cpu", std::nullopt, std::nullopt}), "");
  std::string problem = problemOf({"gpu", std::nullopt, std::nullopt});
  EXPECT_NE(problem.find("its measurements are of another machine: they are for 'cpu', and 'gpu' "
                         "is asked for"),
            std::string::npos)
      << problem;
  problem = problemOf({"cpu", 8, std::nullopt});
  EXPECT_NE(problem.find("it has no measurements for '8' threads, but for '1'"), std::string::npos)
      << problem;
  Record elsewhere = trial(group, 6, 1e-3);
  elsewhere.machine = "znver4, 64 threads";
  write({elsewhere}, group);
  problem = problemOf({"cpu", std::nullopt, std::nullopt});
  EXPECT_NE(problem.find("its measurements are of several machines: 'znver4, 2 threads', "
                         "'znver4, 64 threads'"),
            std::string::npos)
      << problem;
}

TEST_F(Features, AskForAMachineThatAnOlderFileDoesNotDescribe) {
  graph::GroupOp group = product();
  write({trial(group, 8, 1e-3)}, group, /*isDescribed=*/false);
  std::string problem = problemOf({"cpu", std::nullopt, std::nullopt});
  EXPECT_NE(problem.find("it does not describe the machine 'znver4, 2 threads'"), std::string::npos)
      << problem;
  EXPECT_EQ(problemOf({"cpu", std::nullopt, program::Machine()}), "");
}

TEST_F(Features, RefuseDamagedRecords) {
  graph::GroupOp group = product();
  write({trial(group, 8, 1e-3)}, group);
  execute("UPDATE subject SET text = replace(text, '40', '41')");
  std::string problem = problemOf({"cpu", std::nullopt, std::nullopt});
  EXPECT_NE(problem.find("the text of group 'sha256:"), std::string::npos) << problem;
  EXPECT_NE(problem.find("is damaged"), std::string::npos) << problem;
  execute("PRAGMA user_version = 9");
  problem = problemOf({"cpu", std::nullopt, std::nullopt});
  EXPECT_NE(problem.find("its schema is version 9"), std::string::npos) << problem;
}

} // namespace
