// hosted: lists and strings, which services of the runtime make. Numbers go in and come out;
// strings are made of numbers on the way.

#include "test/ops/case.h"

namespace heddle::ops {

static const char kLists[] = R"(
!list = tensor<!graph.list<"sequence", f32, 2>>
!a = tensor<?x?xf32, #graph.dims<"$a", "$b">>
!b = tensor<?x?xf32, #graph.dims<"$c", "$d">>
!c = tensor<?x?x?xf32, #graph.dims<"$e", "$f", "$g">>
!x = tensor<?x3xf32, #graph.dims<"n", 3>>
func.func @main(%x: !x, %y: tensor<4x3xf32>, %p: tensor<i64>)
    -> (!a, !b, !c, tensor<i64>, tensor<i64>, tensor<i64>) {
  %l = graph.list_make %x, %y : (!x, tensor<4x3xf32>) -> !list
  %m = graph.list_insert %l, %y, %p : (!list, tensor<4x3xf32>, tensor<i64>) -> !list
  %o = graph.list_insert %m, %x : (!list, !x) -> !list
  %at = graph.list_at %m, %p : (!list, tensor<i64>) -> !a
  %e = graph.list_erase %o, %p : (!list, tensor<i64>) -> !list
  %f = graph.list_erase %e : (!list) -> !list
  %joined = graph.list_concat %e {axis = 0} : (!list) -> !b
  %columns = graph.list_split %joined {axis = 1, keep_dims = false} : (!b)
      -> tensor<!graph.list<"sequence", f32, 1>>
  %again = graph.list_split %joined {axis = 1} : (!b) -> !list
  %stacked = graph.list_concat %again {axis = 1, new_axis = true} : (!list) -> !c
  %n = graph.list_length %o : (!list) -> tensor<i64>
  %i = graph.list_length %f : (!list) -> tensor<i64>
  %j = graph.list_length %columns : (tensor<!graph.list<"sequence", f32, 1>>) -> tensor<i64>
  return %at, %joined, %stacked, %n, %i, %j : !a, !b, !c, tensor<i64>, tensor<i64>, tensor<i64>
}
)";

static const char kPieces[] = R"(
!list = tensor<!graph.list<"sequence", i32, 2>>
!a = tensor<?x?xi32, #graph.dims<"$a", "$b">>
!b = tensor<?x?xi32, #graph.dims<"$c", "$d">>
!x = tensor<3x?xi32, #graph.dims<3, "n">>
func.func @main(%x: !x, %each: tensor<i64>, %y: tensor<2x9xi32>) -> (!a, !b, tensor<i64>) {
  %last = graph.constant dense<-1> : tensor<i64>
  %sizes = graph.constant dense<[2, 0, 7]> : tensor<3xi64>
  %l = graph.list_split %x, %each {axis = 1} : (!x, tensor<i64>) -> !list
  %m = graph.list_split %y, %sizes {axis = 1} : (tensor<2x9xi32>, tensor<3xi64>) -> !list
  %a = graph.list_at %l, %last : (!list, tensor<i64>) -> !a
  %b = graph.list_at %m, %last : (!list, tensor<i64>) -> !b
  %n = graph.list_length %l : (!list) -> tensor<i64>
  return %a, %b, %n : !a, !b, tensor<i64>
}
)";

// Lists and optionals through loops and branches.
static const char kCarried[] = R"(
!list = tensor<!graph.list<"sequence", f32, 1>>
!maybe = tensor<!graph.list<"optional", f32, 1>>
!maybes = tensor<!graph.list<"optional_sequence", f32, 1>>
!taken = tensor<?xf32, #graph.dims<"$taken">>
!any = tensor<!graph.list<"any_rank", f32, -2>>
func.func @main(%trips: tensor<i64>, %has: tensor<i1>, %x: tensor<?xf32, #graph.dims<"n">>)
    -> (tensor<?xf32, #graph.dims<"$all">>, tensor<i64>, !taken, tensor<i64>) {
  %true = graph.constant dense<true> : tensor<i1>
  %empty = graph.list_make %x : (tensor<?xf32, #graph.dims<"n">>) -> !list
  %l = graph.loop %trips, %true, %empty : (tensor<i64>, tensor<i1>, !list) -> !list {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %list: !list):
    %at = graph.list_at %list, %i : (!list, tensor<i64>) -> tensor<?xf32, #graph.dims<"$k">>
    %twice = graph.concat %at, %x {axis = 0}
      : (tensor<?xf32, #graph.dims<"$k">>, tensor<?xf32, #graph.dims<"n">>)
      -> tensor<?xf32, #graph.dims<"$k + n">>
    %next = graph.list_insert %list, %twice : (!list, tensor<?xf32, #graph.dims<"$k + n">>) -> !list
    graph.yield %c, %next : tensor<i1>, !list
  }
  %maybe = graph.if %has : (tensor<i1>) -> !maybes {
    %m = graph.list_cast %l : (!list) -> !maybes
    graph.yield %m : !maybes
  } else {
    %m = graph.list_make : () -> !maybes
    graph.yield %m : !maybes
  }
  %length = graph.list_length %maybe : (!maybes) -> tensor<i64>
  %all = graph.list_concat %l {axis = 0} : (!list) -> tensor<?xf32, #graph.dims<"$all">>
  %one = graph.list_make %all : (tensor<?xf32, #graph.dims<"$all">>) -> !maybe
  %only = graph.list_at %one : (!maybe) -> !taken
  %any = graph.if %has : (tensor<i1>) -> !any {
    %m = graph.list_make %all : (tensor<?xf32, #graph.dims<"$all">>) -> !any
    graph.yield %m : !any
  } else {
    %zero = graph.constant dense<0.0> : tensor<f32>
    %n = graph.list_make %zero : (tensor<f32>) -> !any
    graph.yield %n : !any
  }
  %rank = graph.list_rank %any : (!any) -> tensor<i64>
  return %all, %length, %only, %rank
    : tensor<?xf32, #graph.dims<"$all">>, tensor<i64>, !taken, tensor<i64>
}
)";

static const char kStrings[] = R"(
!x = tensor<?x3xi64, #graph.dims<"n", 3>>
!s = tensor<?x3x!graph.string, #graph.dims<"n", 3>>
!pieces = tensor<?x3x?x!graph.string, #graph.dims<"n", 3, "$pieces">>
!numbers = tensor<?x3x?xi64, #graph.dims<"n", 3, "$pieces">>
!f = tensor<?x3xf64, #graph.dims<"n", 3>>
!t = tensor<?x3xi1, #graph.dims<"n", 3>>
!around = tensor<?x3x?x!graph.string, #graph.dims<"n", 3, "$around">>
!are = tensor<?x3x?xi1, #graph.dims<"n", 3, "$around">>
module attributes {graph.strings = ["12", "", "-3", "7"]} {
func.func @main(%x: !x, %y: !x, %z: !f) -> (!numbers, !x, !t, !f, !t, !x, !are) {
  %s = graph.string_cast %x : (!x) -> !s
  %t = graph.string_cast %y : (!x) -> !s
  %both = graph.string_concat %s, %t : (!s, !s) -> !s
  %seven = graph.constant #graph.bits<dense<3> : tensor<i64>> : tensor<!graph.string>
  %pieces, %counts = graph.string_split %both, %seven {most = 2} : (!s, tensor<!graph.string>)
      -> (!pieces, !x)
  %zero = graph.constant #graph.bits<dense<2> : tensor<i64>> : tensor<!graph.string>
  %filled = graph.constant #graph.bits<dense<1> : tensor<i64>> : tensor<!graph.string>
  %none = graph.broadcast %filled : (tensor<!graph.string>) -> !pieces
  %some = graph.broadcast %zero : (tensor<!graph.string>) -> !pieces
  %empty = graph.equal %pieces, %none : (!pieces, !pieces)
      -> tensor<?x3x?xi1, #graph.dims<"n", 3, "$pieces">>
  %chosen = graph.select %empty, %some, %pieces
      : (tensor<?x3x?xi1, #graph.dims<"n", 3, "$pieces">>, !pieces, !pieces) -> !pieces
  %numbers = graph.string_cast %chosen : (!pieces) -> !numbers
  %same = graph.equal %s, %t : (!s, !s) -> !t
  %texts = graph.string_cast %z : (!f) -> !s
  %back = graph.string_cast %texts : (!s) -> !f
  %automaton = graph.constant dense<AUTOMATON> : tensor<2x257xi32>
  %matches = graph.string_match %both, %automaton : (!s, tensor<2x257xi32>) -> !t
  %scanner = graph.constant dense<SCANNER> : tensor<4x259xi32>
  %around, %found = graph.string_split %texts, %scanner : (!s, tensor<4x259xi32>) -> (!around, !x)
  %are = graph.string_match %around, %automaton : (!around, tensor<2x257xi32>) -> !are
  return %numbers, %counts, %same, %back, %matches, %found, %are
    : !numbers, !x, !t, !f, !t, !x, !are
}
}
)";

// Three of the words are one that stops.
static const char kWords[] = R"(
!w = tensor<?x!graph.string, #graph.dims<"$words">>
module attributes {graph.strings = ["Äpfel", "are", "RED", "\D0\B6", "äPFEL", "red"]} {
func.func @main(%x: tensor<6xi64>)
      -> (tensor<?xi1, #graph.dims<"$words">>, tensor<?xi64, #graph.dims<"$same">>) {
  %words = graph.bitcast %x : (tensor<6xi64>) -> tensor<6x!graph.string>
  %stop = graph.constant #graph.bits<dense<[5]> : tensor<1xi64>> : tensor<1x!graph.string>
  %kept = graph.string_normalize %words, %stop {letter_case = "upper"}
      : (tensor<6x!graph.string>, tensor<1x!graph.string>) -> !w
  %first = graph.constant dense<0> : tensor<1xi64>
  %one = graph.gather %kept, %first {axis = 0} : (!w, tensor<1xi64>) -> tensor<1x!graph.string>
  %all = graph.broadcast %one : (tensor<1x!graph.string>) -> !w
  %same = graph.equal %kept, %all : (!w, !w) -> tensor<?xi1, #graph.dims<"$words">>
  %lower = graph.string_normalize %words,
      %stop {letter_case = "lower", case_sensitive = true}
      : (tensor<6x!graph.string>, tensor<1x!graph.string>)
      -> tensor<?x!graph.string, #graph.dims<"$same">>
  %equal = graph.equal %lower, %lower
      : (tensor<?x!graph.string, #graph.dims<"$same">>,
         tensor<?x!graph.string, #graph.dims<"$same">>)
      -> tensor<?xi1, #graph.dims<"$same">>
  %count = graph.cast %equal : (tensor<?xi1, #graph.dims<"$same">>)
      -> tensor<?xi64, #graph.dims<"$same">>
  return %same, %count : tensor<?xi1, #graph.dims<"$words">>, tensor<?xi64, #graph.dims<"$same">>
}
}
)";

static const char kSeed[] = R"(
module {
func.func @main(%x: tensor<ui64>) -> (tensor<ui64>, tensor<ui64>) {
  %seed = graph.run_seed : () -> tensor<ui64>
  %sum = graph.add %x, %seed : tensor<ui64>
  return %sum, %seed : tensor<ui64>, tensor<ui64>
}
}
)";

// A file of 2 x 3 pixels: "P6\n3 2\n255\n" and 18 bytes.
static const char kImage[] = R"(
!p = tensor<?x?x3xui8, #graph.dims<"$h", "$w", 3>>
!g = tensor<?x?x1xui8, #graph.dims<"$i", "$j", 1>>
module {
func.func @main(%x: tensor<18xui8>) -> (!p, !g) {
  %head = graph.constant dense<[80, 54, 10, 51, 32, 50, 10, 50, 53, 53, 10]> : tensor<11xui8>
  %file = graph.concat %head, %x {axis = 0} : (tensor<11xui8>, tensor<18xui8>) -> tensor<29xui8>
  %pixels = graph.image_decode %file {pixel_format = "bgr"} : (tensor<29xui8>) -> !p
  %gray = graph.image_decode %file {pixel_format = "gray"} : (tensor<29xui8>) -> !g
  return %pixels, %gray : !p, !g
}
}
)";

/// Accepts strings of digits: first `starts` states, from which none is read yet, then one more.
static std::string digits(int starts) {
  std::string rows;
  for (int state = 0; state <= starts; ++state) {
    rows += state ? "], [" : "";
    for (int byte = 0; byte < 256 + starts; ++byte) {
      int next = byte >= 256 ? state == starts : byte >= '0' && byte <= '9' ? starts : -1;
      rows += (byte ? ", " : "") + std::to_string(next);
    }
  }
  return "[[" + rows + "]]";
}

void addHosted(Cases &cases) {
  auto add = [&](const std::string &name, std::string text, std::vector<Fill> fills,
                 std::vector<Sizes> runs) {
    cases.push_back({"hosted/" + name, [=](Model &m) { m.text(text, fills); }, std::move(runs)});
  };
  std::vector<Sizes> runs = {{{"n", 3}}, {{"n", 1}}, {{"n", 0}}};
  for (double place : {-2, 0, 1, 2})
    add("lists " + std::to_string(int(place)), kLists, {Fill(), Fill(), Fill::range(place, place)},
        runs);
  for (double each : {1, 2, 5})
    add("pieces " + std::to_string(int(each)), kPieces, {Fill(), Fill::range(each, each), Fill()},
        {{{"n", 3}}, {{"n", 11}}});
  for (double truth : {0, 1})
    add("carried " + std::to_string(int(truth)), kCarried,
        {Fill::range(4, 4), Fill::range(truth, truth), Fill()}, runs);
  std::string text = kStrings;
  text.replace(text.find("AUTOMATON"), 9, digits(1));
  text.replace(text.find("SCANNER"), 7, digits(3));
  add("strings", text, {Fill::range(0, 90), Fill::range(1, 900), Fill::range(-9, 1e7)}, runs);
  for (double word : {0, 2, 4})
    add("words " + std::to_string(int(word)), kWords, {Fill::range(word, word)}, {});
  add("words", kWords, {Fill::range(0, 5)}, {});
  add("seed", kSeed, {Fill::range(0, 99)}, {});
  add("image", kImage, {Fill::range(0, 255)}, {});
}

} // namespace heddle::ops
