// Records_test: files of records are shared and refused as they should be; equal groups have equal
// keys; what was recorded is chosen where it still holds.

#include "compiler/records/Decision.h"
#include "compiler/records/GroupKey.h"
#include "compiler/records/RecordedChooser.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <thread>

using namespace mlir;
using namespace heddle;
using records::PlanRecord;
using records::Record;
using records::Records;
using warehouse::KnobValues;
using Access = records::Records::Access;

namespace {

class RecordFiles : public testing::Test {
protected:
  RecordFiles() {
    SmallString<128> folder;
    llvm::sys::fs::createUniqueDirectory("heddle-records", folder);
    llvm::sys::path::append(folder, "records.db");
    path = folder.str();
  }
  ~RecordFiles() override { llvm::sys::fs::remove_directories(llvm::sys::path::parent_path(path)); }

  static std::string problemOf(const std::string &path, Access access) {
    auto opened = Records::open(path, access);
    return opened ? "" : llvm::toString(opened.takeError());
  }
  static void execute(const std::string &path, const char *sql) {
    sqlite3 *database = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }

  static Record record(const std::string &key, int64_t m) {
    Record made;
    made.situation = {key, "cpu", 2};
    made.base = "matmul@1 m=8";
    made.card = "matmul";
    made.cardHash = "1";
    made.knobs = {{"m", m}};
    made.seconds = 0.5;
    made.speedup = 1.25;
    return made;
  }

  std::string path;
};

TEST_F(RecordFiles, KeepWhatIsAdded) {
  auto written = llvm::cantFail(Records::open(path, Access::Write));
  Record given = record("k", 4);
  given.sizes = "32,128";
  given.isConfirmed = true;
  llvm::cantFail(written->add(given));
  Record failed = record("k", 6);
  failed.failure = "it crashed: Segmentation fault";
  failed.limitSeconds = 3;
  llvm::cantFail(written->add(failed));
  llvm::cantFail(written->add(record("other", 4)));

  auto read = llvm::cantFail(Records::open(path, Access::Read));
  auto found = llvm::cantFail(read->find({"k", "cpu", 2}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].isSameCandidate(given));
  EXPECT_EQ(found[0].sizes, "32,128");
  EXPECT_EQ(found[0].speedup, 1.25);
  EXPECT_TRUE(found[0].isConfirmed);
  EXPECT_EQ(found[1].failure, failed.failure);
  EXPECT_EQ(found[1].limitSeconds, 3);
  EXPECT_TRUE(llvm::cantFail(read->find({"k", "cpu", 1})).empty());
  EXPECT_TRUE(llvm::cantFail(read->find({"k", "gpu", 2})).empty());
}

TEST_F(RecordFiles, ALookDoesNotReplaceAMeasurementAtLength) {
  auto written = llvm::cantFail(Records::open(path, Access::Write));
  Record long_ = record("k", 4), look = record("k", 4);
  long_.isConfirmed = true;
  look.speedup = 9;
  llvm::cantFail(written->add(look));
  llvm::cantFail(written->add(long_));
  llvm::cantFail(written->add(look));
  auto found = llvm::cantFail(written->find({"k", "cpu", 2}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].speedup, 1.25);
}

TEST_F(RecordFiles, TakeTwoWritersAtOnce) {
  auto write = [&](int64_t first) {
    auto records = llvm::cantFail(Records::open(path, Access::Write));
    for (int64_t i = 0; i < 20; ++i)
      llvm::cantFail(records->add(record("k", first + i)));
  };
  std::thread one(write, 0), other(write, 100);
  one.join();
  other.join();
  auto read = llvm::cantFail(Records::open(path, Access::Read));
  EXPECT_EQ(llvm::cantFail(read->find({"k", "cpu", 2})).size(), 40u);
}

TEST_F(RecordFiles, RefuseWhatIsNone) {
  std::string missing = problemOf(path, Access::Read);
  EXPECT_NE(missing.find("cannot use tuning records '" + path + "'"), std::string::npos) << missing;
  EXPECT_NE(missing.find("'heddle tune' makes such a file"), std::string::npos) << missing;

  std::ofstream(path) << "this is a diary, and no database at all; it is long enough to be read";
  for (Access access : {Access::Read, Access::Write})
    EXPECT_NE(problemOf(path, access).find("it is no SQLite file, or a damaged one"),
              std::string::npos);
}

TEST_F(RecordFiles, RefuseThoseOfOtherPrograms) {
  execute(path, "CREATE TABLE songs (name TEXT)");
  for (Access access : {Access::Read, Access::Write})
    EXPECT_NE(problemOf(path, access).find("holds no tuning records"), std::string::npos);
}

TEST_F(RecordFiles, RefuseAnotherVersion) {
  {
    llvm::cantFail(Records::open(path, Access::Write));
  }
  execute(path, "PRAGMA user_version = 7");
  std::string problem = problemOf(path, Access::Read);
  EXPECT_NE(problem.find("its schema is version 7, this heddle reads 1 to 5"), std::string::npos)
      << problem;
}

TEST_F(RecordFiles, KeepWhatGroupsAre) {
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  llvm::cantFail(records->describe("k", "a product"));
  llvm::cantFail(records->describe("k", "a product"));
  EXPECT_EQ(llvm::cantFail(records->description("k")), "a product");
  EXPECT_EQ(llvm::cantFail(records->description("other")), "");
}

TEST_F(RecordFiles, BringThoseOfVersionOneUpToDate) {
  {
    auto records = llvm::cantFail(Records::open(path, Access::Write));
    llvm::cantFail(records->add(record("k", 0)));
  }
  execute(path, "DROP TABLE subject; DROP TABLE origin; DROP TABLE card; DROP TABLE machine;"
                "DROP TABLE plan; PRAGMA user_version = 1");
  { // a file that is only read needs nothing more
    auto records = llvm::cantFail(Records::open(path, Access::Read));
    EXPECT_EQ(llvm::cantFail(records->all()).size(), 1u);
    EXPECT_EQ(llvm::cantFail(records->description("k")), "");
    EXPECT_TRUE(llvm::cantFail(records->origins()).empty());
    EXPECT_TRUE(llvm::cantFail(records->mechanisms()).empty());
    EXPECT_FALSE(llvm::cantFail(records->machine("cpu", 2, "")));
  }
  auto bring = [&] { llvm::cantFail(Records::open(path, Access::Write)); };
  std::thread one(bring), other(bring);
  one.join();
  other.join();
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  llvm::cantFail(records->describe("k", "a product"));
  EXPECT_EQ(llvm::cantFail(records->description("k")), "a product");
  EXPECT_EQ(llvm::cantFail(records->find({"k", "cpu", 2})).size(), 1u);
}

TEST_F(RecordFiles, BringThoseOfVersionTwoUpToDate) {
  {
    auto records = llvm::cantFail(Records::open(path, Access::Write));
    llvm::cantFail(records->describe("k", "a product"));
  }
  execute(path, "DROP TABLE origin; DROP TABLE card; DROP TABLE machine; DROP TABLE plan;"
                "PRAGMA user_version = 2");
  {
    auto records = llvm::cantFail(Records::open(path, Access::Read));
    EXPECT_EQ(llvm::cantFail(records->description("k")), "a product");
    EXPECT_TRUE(llvm::cantFail(records->origins()).empty());
  }
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  EXPECT_EQ(llvm::cantFail(records->description("k")), "a product");
  llvm::cantFail(records->addOrigin("k", "m.onnx", 3));
  EXPECT_EQ(llvm::cantFail(records->origins()).count("k"), 1u);
}

TEST_F(RecordFiles, BringThoseOfVersionThreeUpToDate) {
  {
    auto records = llvm::cantFail(Records::open(path, Access::Write));
    llvm::cantFail(records->addOrigin("k", "m.onnx", 3));
  }
  execute(path, "DROP TABLE plan; PRAGMA user_version = 3");
  {
    auto records = llvm::cantFail(Records::open(path, Access::Read));
    EXPECT_TRUE(llvm::cantFail(records->plansLike({})).empty());
  }
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  EXPECT_EQ(llvm::cantFail(records->origins()).size(), 1u);
  llvm::cantFail(records->add(PlanRecord()));
  EXPECT_EQ(llvm::cantFail(records->plansLike({})).size(), 1u);
}

TEST_F(RecordFiles, TellPrecisionsApart) {
  auto written = llvm::cantFail(Records::open(path, Access::Write));
  Record exact = record("k", 4), rounded = record("k", 4);
  rounded.isShort = true;
  rounded.speedup = 2;
  EXPECT_FALSE(exact.isSameCandidate(rounded));
  EXPECT_EQ(records::textOf(rounded), "matmul@1 bf16 m=4");
  llvm::cantFail(written->add(exact));
  llvm::cantFail(written->add(rounded));
  llvm::cantFail(written->add(rounded));
  auto found = llvm::cantFail(written->find({"k", "cpu", 2}));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].isSameCandidate(exact));
  EXPECT_TRUE(found[1].isSameCandidate(rounded));
  EXPECT_EQ(found[1].speedup, 2);
}

TEST_F(RecordFiles, BringThoseOfVersionFourUpToDate) {
  {
    auto records = llvm::cantFail(Records::open(path, Access::Write));
    llvm::cantFail(records->add(record("k", 4)));
    llvm::cantFail(records->add(record("k", 2)));
  }
  execute(path, "CREATE TABLE four AS SELECT * FROM trial; DROP TABLE trial; CREATE TABLE trial ("
                "id INTEGER PRIMARY KEY, key, target, threads, machine, nest, sizes, base, card, "
                "card_hash, knobs, seconds, speedup, confirmed, failure, limit_seconds, UNIQUE "
                "(key, target, threads, sizes, base, card, card_hash, knobs));"
                "INSERT INTO trial SELECT id, key, target, threads, machine, nest, sizes, base, "
                "card, card_hash, knobs, seconds, speedup, confirmed, failure, limit_seconds "
                "FROM four; DROP TABLE four; PRAGMA user_version = 4");
  for (Access access : {Access::Read, Access::Write}) {
    auto records = llvm::cantFail(Records::open(path, access));
    auto found = llvm::cantFail(records->find({"k", "cpu", 2}));
    ASSERT_EQ(found.size(), 2u);
    EXPECT_TRUE(found[0].isSameCandidate(record("k", 4)));
    EXPECT_EQ(found[1].seconds, 0.5);
  }
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  Record rounded = record("k", 4);
  rounded.isShort = true;
  llvm::cantFail(records->add(rounded));
  EXPECT_EQ(llvm::cantFail(records->all()).size(), 3u);
}

TEST_F(RecordFiles, KeepWhatPlansTake) {
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  PlanRecord plan{"sha256:1", "cpu",      2,        "znver4, 2 threads",
                  "seq=32",   "sha256:2", "{plan}", "{}",
                  0.5,        1.25,       true,     ""};
  llvm::cantFail(records->add(plan));
  PlanRecord other = plan;
  other.decisions = "{other}";
  other.failure = "it crashed";
  llvm::cantFail(records->add(other));
  plan.speedup = 1.5;
  llvm::cantFail(records->add(plan)); // replaces the first
  auto found = llvm::cantFail(records->plansLike(plan));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].failure, "it crashed");
  EXPECT_EQ(found[1].decisions, "{plan}");
  EXPECT_EQ(found[1].groups, "{}");
  EXPECT_EQ(found[1].seconds, 0.5);
  EXPECT_EQ(found[1].speedup, 1.5);
  EXPECT_TRUE(found[1].isConfirmed);
  for (auto change :
       {&PlanRecord::model, &PlanRecord::target, &PlanRecord::sizes, &PlanRecord::base}) {
    PlanRecord elsewhere = plan;
    elsewhere.*change = "else";
    EXPECT_TRUE(llvm::cantFail(records->plansLike(elsewhere)).empty());
  }
}

TEST_F(RecordFiles, KeepWhatMeasurementsWereMadeOf) {
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  for (const char *model : {"b.onnx", "a.onnx", "b.onnx"})
    llvm::cantFail(records->addOrigin("k", model, 2));
  llvm::cantFail(records->addOrigin("other", "a.onnx", 1));
  auto origins = llvm::cantFail(records->origins());
  auto [first, last] = origins.equal_range("k");
  std::vector<std::string> models;
  for (auto &[key, model] : llvm::make_range(first, last))
    models.push_back(model);
  EXPECT_EQ(models, (std::vector<std::string>{"a.onnx", "b.onnx"}));

  warehouse::Card card;
  card.name = "matmul";
  card.hash = "1";
  card.mechanism = &mechanism::kContraction;
  llvm::cantFail(records->addCard(card));
  llvm::cantFail(records->addCard(card));
  EXPECT_EQ((llvm::cantFail(records->mechanisms())[{"matmul", "1"}]), "contraction");

  Record known = record("k", 4);
  known.machine = "znver4, 2 threads";
  program::Machine machine;
  machine.lanes = 8;
  machine.registers = 16;
  machine.l1Bytes = 48 << 10;
  machine.l2Bytes = 2 << 20;
  machine.dot = program::Dot::Bytes;
  machine.permutesWords = true;
  llvm::cantFail(records->addMachine(known, machine));
  auto found = llvm::cantFail(records->machine("cpu", 2, "znver4, 2 threads"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->lanes, 8);
  EXPECT_EQ(found->registers, 16);
  EXPECT_EQ(found->l1Bytes, 48 << 10);
  EXPECT_EQ(found->l2Bytes, 2 << 20);
  EXPECT_EQ(found->workers, 2);
  EXPECT_EQ(found->dot, program::Dot::Bytes);
  EXPECT_TRUE(found->permutesWords);
  EXPECT_FALSE(found->permutesBytes);
  EXPECT_FALSE(llvm::cantFail(records->machine("cpu", 1, "znver4, 2 threads")));
  EXPECT_FALSE(llvm::cantFail(records->machine("cpu", 2, "another")));
}

/// A product whose sizes, element type, names and right operand are filled in.
constexpr StringLiteral kProduct = R"(
func.func @main(%x: tensor<MxKxTYPE>, %v: tensor<KxNxTYPE>) -> tensor<MxNxTYPE> {
  %w = graph.constant dense<VALUE> : tensor<KxNxTYPE>
  %g = graph.group "NAME" {mechanism = "contraction"} : tensor<MxNxTYPE> {
    %d = graph.matmul %x, %RIGHT
      : (tensor<MxKxTYPE>, tensor<KxNxTYPE>) -> tensor<MxNxTYPE> loc("NAME")
    %e = graph.LAST %d : tensor<MxNxTYPE>
    graph.yield %e : tensor<MxNxTYPE>
  }
  return %g : tensor<MxNxTYPE>
})";

class Groups : public RecordFiles {
protected:
  Groups()
      : cards((context.loadDialect<graph::GraphDialect, func::FuncDialect>(),
               llvm::cantFail(warehouse::Warehouse::load(context)))) {}

  graph::GroupOp product(std::map<std::string, std::string> holes = {}) {
    holes.insert({{"MxK", "128x64"},
                  {"KxN", "64x256"},
                  {"MxN", "128x256"},
                  {"TYPE", "f32"},
                  {"VALUE", "1.0"},
                  {"NAME", "dense"},
                  {"RIGHT", "w"},
                  {"LAST", "exp"}});
    std::string text = kProduct.str();
    // A longer one goes before what is a part of it.
    std::vector<std::pair<std::string, std::string>> longest(holes.begin(), holes.end());
    llvm::sort(longest, [](auto &a, auto &b) { return a.first.size() > b.first.size(); });
    for (auto &[hole, filling] : longest)
      for (size_t at; (at = text.find(hole)) != std::string::npos;)
        text.replace(at, hole.size(), filling);
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    EXPECT_TRUE(modules.back()) << text;
    graph::GroupOp found;
    modules.back()->walk([&](graph::GroupOp group) { found = group; });
    return found;
  }
  std::string key(std::map<std::string, std::string> holes = {}) {
    return records::keyOf(product(std::move(holes))).hash;
  }

  plan::Choice chosen(graph::GroupOp group, Records &records) {
    records::RecordedChooser chooser(records, "cpu", 2, byRule);
    return llvm::cantFail(chooser.choose(group, cards.offer(group), {}));
  }
  /// A candidate that was measured at length beside the default choice.
  Record measured(graph::GroupOp group, int64_t m, double speedup) {
    plan::Choice base = llvm::cantFail(byRule.choose(group, cards.offer(group), {}));
    Record made;
    made.situation = {records::keyOf(group).hash, "cpu", 2};
    made.base = records::textOf(base);
    made.card = base.card->name;
    made.cardHash = base.card->hash;
    made.knobs = base.knobs;
    made.knobs["m"] = m;
    made.speedup = speedup;
    made.isConfirmed = true;
    return made;
  }

  MLIRContext context;
  warehouse::Warehouse cards;
  plan::DefaultChooser byRule;
  std::vector<OwningOpRef<ModuleOp>> modules;
};

TEST_F(Groups, keepsTheWordsOfTheFirstRecords) {
  std::string text = records::keyOf(product({})).text;
  EXPECT_NE(text.find("graph.group \"group\" {kind = \"contraction\"}"), std::string::npos) << text;
}

TEST_F(Groups, AreEqualWhateverTheirNamesAndWeights) {
  EXPECT_EQ(key(), key({{"NAME", "other"}}));
  EXPECT_EQ(key(), key({{"VALUE", "0.5"}}));
}

TEST_F(Groups, DifferByWhatTheirCodeDependsOn) {
  std::set<std::string> keys = {key(), key({{"TYPE", "f64"}}), key({{"RIGHT", "v"}}),
                                key({{"LAST", "neg"}}),
                                key({{"MxK", "127x64"}, {"MxN", "127x256"}})};
  EXPECT_EQ(keys.size(), 5u);
}

TEST_F(Groups, AreEqualWhateverTheirSymbolsAreCalled) {
  auto symbolic = [&](const std::string &name) {
    std::string dims = "#graph.dims<\"" + name + "\", ";
    return key(
        {{"MxKxTYPE", "?x64xf32, " + dims + "64>"}, {"MxNxTYPE", "?x256xf32, " + dims + "256>"}});
  };
  EXPECT_EQ(symbolic("batch"), symbolic("rows"));
  EXPECT_NE(symbolic("batch"), key());
}

TEST_F(Groups, AreEqualAfterAChoice) {
  graph::GroupOp group = product();
  std::string before = records::keyOf(group).hash;
  llvm::cantFail(warehouse::apply(*cards.find("matmul"), group));
  EXPECT_EQ(records::keyOf(group).hash, before);
}

TEST_F(Groups, TakeTheBestOfTheirRecords) {
  graph::GroupOp group = product();
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  int64_t byDefault = chosen(group, *records).knobs.at("m");
  llvm::cantFail(records->add(measured(group, 2, 1.1)));
  llvm::cantFail(records->add(measured(group, 4, 1.3)));
  llvm::cantFail(records->add(measured(group, 12, 0.9)));
  EXPECT_EQ(chosen(group, *records).knobs.at("m"), 4);
  EXPECT_EQ(chosen(product({{"TYPE", "f64"}}), *records).card->name, "matmul");
  graph::GroupOp other = product({{"MxK", "130x64"}, {"MxN", "130x256"}});
  EXPECT_EQ(chosen(other, *records).knobs.at("m"), byDefault);
}

/// Records of bf16 say nothing of f32, and the other way around.
TEST_F(Groups, RoundFactorsWhereBothWereMeasured) {
  graph::GroupOp group = product();
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  plan::ShortChooser shortly(byRule);
  auto choiceOf = [&](bool mayRound, bool hasMatrices = false) {
    program::Machine machine;
    machine.shortFloats = program::ShortFloats::Native;
    machine.hasMatrices = hasMatrices;
    records::RecordedChooser chooser(*records, "cpu", 2, byRule, mayRound ? &shortly : nullptr);
    return llvm::cantFail(chooser.choose(group, cards.offer(group), machine));
  };
  int64_t byDefault = choiceOf(false).knobs.at("m");
  llvm::cantFail(records->add(measured(group, 4, 1.3)));
  EXPECT_EQ(choiceOf(false).knobs.at("m"), 4);
  EXPECT_TRUE(choiceOf(true).isShort) << "by a roofline";
  EXPECT_EQ(choiceOf(true).knobs.at("m"), byDefault);

  Record rounded = measured(group, byDefault, 1.2), better = measured(group, 2, 1.5);
  rounded.isShort = better.isShort = true;
  llvm::cantFail(records->add(rounded));
  EXPECT_FALSE(choiceOf(true).isShort) << "f32 was faster";
  EXPECT_EQ(choiceOf(true).knobs.at("m"), 4);
  EXPECT_EQ(choiceOf(true).whyPrecision, "both were measured");
  EXPECT_EQ(choiceOf(true, /*hasMatrices=*/true).knobs.at("m"), 32) << "those were not measured";
  better.speedup = 1.31;
  llvm::cantFail(records->add(better));
  EXPECT_FALSE(choiceOf(true).isShort) << "hardly faster than f32";
  better.speedup = 1.5;
  llvm::cantFail(records->add(better));
  EXPECT_TRUE(choiceOf(true).isShort);
  EXPECT_EQ(choiceOf(true).knobs.at("m"), 2);
  EXPECT_FALSE(choiceOf(false).isShort);
  EXPECT_EQ(choiceOf(false).knobs.at("m"), 4);
}

TEST_F(Groups, KeepF32WhereBf16WasNoFaster) {
  auto isShort = [&](std::function<void(Record &)> change) {
    llvm::sys::fs::remove(path);
    graph::GroupOp group = product();
    auto records = llvm::cantFail(Records::open(path, Access::Write));
    plan::ShortChooser shortly(byRule);
    program::Machine machine;
    machine.shortFloats = program::ShortFloats::Native;
    records::RecordedChooser chooser(*records, "cpu", 2, byRule, &shortly);
    Record rounded = measured(group, 0, 1.2);
    rounded.knobs = llvm::cantFail(byRule.choose(group, cards.offer(group), {})).knobs;
    rounded.isShort = true;
    change(rounded);
    llvm::cantFail(records->add(rounded));
    return llvm::cantFail(chooser.choose(group, cards.offer(group), machine)).isShort;
  };
  EXPECT_TRUE(isShort([](Record &) {}));
  EXPECT_FALSE(isShort([](Record &record) { record.speedup = 1.01; }));
  EXPECT_FALSE(isShort([](Record &record) {
    record.speedup = 0.8;
    record.isConfirmed = false;
  }));
  EXPECT_FALSE(isShort([](Record &record) {
    record.speedup = 0;
    record.failure = "its numbers are not those of factors of bf16";
    record.isConfirmed = false;
  }));
  EXPECT_TRUE(isShort([](Record &record) { record.isConfirmed = false; })) << "by a roofline";
}

TEST_F(Groups, LeaveWhatIsNotClearlyFasterOrNotSure) {
  graph::GroupOp group = product();
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  int64_t byDefault = chosen(group, *records).knobs.at("m");
  llvm::cantFail(records->add(measured(group, 2, 1.01)));
  Record look = measured(group, 4, 2);
  look.isConfirmed = false;
  Record failed = measured(group, 12, 3);
  failed.failure = "it crashed";
  llvm::cantFail(records->add(look));
  llvm::cantFail(records->add(failed));
  EXPECT_EQ(chosen(group, *records).knobs.at("m"), byDefault);
}

TEST_F(Groups, IgnoreWhatNoLongerHolds) {
  graph::GroupOp group = product();
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  int64_t byDefault = chosen(group, *records).knobs.at("m");
  Record stale = measured(group, 4, 2), unknown = stale, outside = stale, older = stale;
  stale.cardHash = "of an older text";
  unknown.card = "a_card_that_is_gone";
  outside.knobs["m"] = 7;
  older.base = "matmul@1 m=1";
  for (const Record &record : {stale, unknown, outside, older})
    llvm::cantFail(records->add(record));
  EXPECT_EQ(chosen(group, *records).knobs.at("m"), byDefault);
}

TEST_F(Groups, ThatWereMeasuredAtSeveralSizesCountAtAll) {
  graph::GroupOp group = product();
  auto records = llvm::cantFail(Records::open(path, Access::Write));
  auto add = [&](int64_t m, const char *sizes, double speedup) {
    Record made = measured(group, m, speedup);
    made.sizes = sizes;
    llvm::cantFail(records->add(made));
  };
  add(4, "1", 3.0);
  add(4, "64", 0.5); // 1.22 in the mean
  add(2, "1", 1.5);
  add(2, "64", 1.2); // 1.34
  add(12, "1", 9.0); // nobody knows what it does at 64
  EXPECT_EQ(chosen(group, *records).knobs.at("m"), 2);
}

plan::Version upTo(int64_t a, KnobValues knobs) { return {{{"a", a}}, std::move(knobs)}; }

TEST(Decision, IsATreeOfSizes) {
  warehouse::Card card;
  KnobValues wide = {{"n", 64}}, narrow = {{"n", 16}}, middle = {{"n", 32}};
  plan::Choice base{&card, wide};
  auto texts = [](const plan::Choice &choice) {
    std::vector<std::string> all;
    for (const plan::Version &version : choice.versions) {
      std::string &text = all.emplace_back();
      for (auto &[size, most] : version.when)
        text += size + "<=" + std::to_string(most) + " ";
      text += std::to_string(version.knobs.at("n"));
    }
    all.push_back(std::to_string(choice.knobs.at("n")));
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts(records::decide(base, {"a"}, {{{5}, {}}, {{9}, {}}})), Texts{"64"});
  // Bounds stand where tiles are full, else in the middle.
  EXPECT_EQ(texts(records::decide(base, {"a"}, {{{5}, narrow}, {{24}, middle}, {{81}, {}}})),
            (Texts{"a<=16 16", "a<=64 32", "64"}));
  EXPECT_EQ(texts(records::decide(base, {"a"}, {{{5}, {}}, {{9}, middle}})),
            (Texts{"a<=7 64", "32"}));
  EXPECT_EQ(texts(records::decide(base, {"a", "b"},
                                  {{{1, 5}, narrow}, {{1, 50}, {}}, {{8, 5}, {}}, {{8, 50}, {}}})),
            (Texts{"a<=4 b<=48 16", "64"}));
  std::vector<records::Point> many;
  for (int64_t size = 1; size <= 8; ++size)
    many.push_back({{size * 100}, KnobValues{{"n", size}}});
  EXPECT_EQ(records::decide(base, {"a"}, many).versions.size(), 7u) << "all are told apart";
  // The default's own versions stay if the default does.
  base.versions = {upTo(8, narrow), upTo(40, middle)};
  EXPECT_EQ(texts(records::decide(base, {"a"}, {{{4}, {}}, {{20}, {}}, {{99}, narrow}})),
            (Texts{"a<=8 16", "a<=40 32", "a<=59 64", "16"}));
  EXPECT_EQ(texts(records::decide(base, {"a"}, {{{20}, narrow}, {{99}, {}}})),
            (Texts{"a<=96 16", "64"}));
  // Points that no split tells apart get the default.
  EXPECT_EQ(texts(records::decide(base, {"a"}, {{{20}, narrow}, {{20}, {}}})),
            (Texts{"a<=8 16", "a<=40 32", "64"}));
}

} // namespace
