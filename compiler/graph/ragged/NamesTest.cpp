// NamesTest: names of sizes of rows, and their sums.

#include "compiler/graph/ragged/Ragged.h"

#include <gtest/gtest.h>

using namespace heddle::graph;

static Dim read(llvm::StringRef text) {
  auto dim = Dim::parse(text);
  EXPECT_TRUE(dim) << text.str();
  return dim ? *dim : Dim();
}

TEST(Ragged, NamesAreReadAsTheyAreWritten) {
  for (llvm::StringRef text :
       {"seq(batch)", "total(seq(batch))", "2*seq(batch) + 1", "total(seq(batch)*seq(batch))",
        "(seq(batch) + 1) floordiv 2", "total((seq(batch) + 1) floordiv 2)"})
    EXPECT_EQ(read(text).str(), text);
  EXPECT_EQ(read(" seq( batch )*2").str(), "2*seq(batch)");
  for (llvm::StringRef text : {"seq(", "seq()", "seq(batch", "seq(batch))", "seq(a b)"})
    EXPECT_FALSE(Dim::parse(text)) << text.str();
}

TEST(Ragged, RowsHaveTheSizeThatIsNamed) {
  EXPECT_EQ(rowSize("seq", "batch"), read("seq(batch)"));
  EXPECT_EQ(rowsOf("seq(batch)"), "batch");
  EXPECT_EQ(rowsOf("seq"), "");
  EXPECT_EQ(rowsOf("total(seq(batch))"), "");
  EXPECT_EQ(rowsOf(read("h*(seq(batch) floordiv 2)")), "batch");
  EXPECT_EQ(rowsOf(read("h*total(seq(batch))")), "");
}

/// The formulas of CoRa: A[b]*H of [B, s(b), H], and H times the sum of squares of [B, s, H, s].
TEST(Ragged, ElementsAreSummedOverRows) {
  Dim batch = Dim::symbol("batch"), seq = rowSize("seq", "batch"), heads = Dim::symbol("heads");
  EXPECT_EQ(elementCount({batch, seq, Dim(64)}).str(), "64*total(seq(batch))");
  EXPECT_EQ(elementCount({batch, seq, heads, seq}), heads * read("total(seq(batch)*seq(batch))"));
  EXPECT_EQ(elementCount({batch * Dim(2), seq, Dim(3)}).str(), "6*total(seq(batch))");
  EXPECT_EQ(elementCount({batch, seq + Dim(1)}), batch + read("total(seq(batch))"));
  EXPECT_EQ(elementCount({batch, Dim(5)}), batch * Dim(5));
  EXPECT_EQ(elementCount({Dim(1), seq, Dim(4)}), seq * Dim(4)) << "a row alone";
}

TEST(Ragged, SumsSayWhatTheySum) {
  EXPECT_EQ(summedBy("total(seq(batch)*seq(batch))"), read("seq(batch)*seq(batch)"));
  EXPECT_FALSE(summedBy("seq(batch)"));
  EXPECT_FALSE(summedBy("total"));
}

TEST(Ragged, RowsAreContiguousBehindTheFirstDimension) {
  Dim batch = Dim::symbol("batch"), seq = rowSize("seq", "batch");
  EXPECT_TRUE(hasRows({batch, seq}, "batch"));
  EXPECT_TRUE(hasRows({batch * Dim(8), seq}, "batch"));
  EXPECT_TRUE(hasRows({batch * seq, Dim(4)}, "batch"));
  EXPECT_FALSE(hasRows({seq, batch}, "batch"));
  EXPECT_FALSE(hasRows({batch + Dim(1), seq}, "batch"));
  EXPECT_FALSE(hasRows({batch, batch, seq}, "batch"));
  EXPECT_FALSE(hasRows({}, "batch"));
  EXPECT_EQ(inRow(batch * Dim(8), "batch"), Dim(8));
}
