// control: branches, loops and scans, whose sizes and trips the run decides.

#include "test/ops/case.h"

namespace heddle::ops {

static const char kIf[] = R"(
func.func @main(%c: tensor<i1>, %x: tensor<?x7xf32, #graph.dims<"n", 7>>, %y: tensor<5x7xf32>)
    -> (tensor<?x7xf32, #graph.dims<"$size", 7>>, tensor<?x7xf32, #graph.dims<"$size", 7>>) {
  %r = graph.if %c : (tensor<i1>) -> tensor<?x7xf32, #graph.dims<"$size", 7>> {
    %e = graph.exp %x : tensor<?x7xf32, #graph.dims<"n", 7>>
    graph.yield %e : tensor<?x7xf32, #graph.dims<"n", 7>>
  } else {
    graph.yield %y : tensor<5x7xf32>
  }
  %s = graph.add %r, %r : tensor<?x7xf32, #graph.dims<"$size", 7>>
  return %r, %s : tensor<?x7xf32, #graph.dims<"$size", 7>>, tensor<?x7xf32, #graph.dims<"$size", 7>>
}
)";

// The carried tensor grows; the body reads a value from outside, and the condition may end it.
static const char kGrowing[] = R"(
func.func @main(%trip: tensor<i64>, %limit: tensor<i64>, %start: tensor<1xi64>)
    -> (tensor<?xi64, #graph.dims<"$carried">>, tensor<?x2xi64, #graph.dims<"$trips", 2>>) {
  %true = graph.constant dense<true> : tensor<i1>
  %r:2 = graph.loop %trip, %true, %start {scan_count = 1} : (tensor<i64>, tensor<i1>, tensor<1xi64>)
      -> (tensor<?xi64, #graph.dims<"$carried">>, tensor<?x2xi64, #graph.dims<"$trips", 2>>) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %state: tensor<?xi64, #graph.dims<"$size">>):
    %goes = graph.less %i, %limit : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %wide = graph.reshape %i : (tensor<i64>) -> tensor<1xi64>
    %grown = graph.concat %state, %wide {axis = 0} : (tensor<?xi64, #graph.dims<"$size">>, tensor<1xi64>) -> tensor<?xi64, #graph.dims<"$size + 1">>
    %pair = graph.concat %wide, %wide {axis = 0} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    graph.yield %goes, %grown, %pair : tensor<i1>, tensor<?xi64, #graph.dims<"$size + 1">>, tensor<2xi64>
  }
  return %r#0, %r#1 : tensor<?xi64, #graph.dims<"$carried">>, tensor<?x2xi64, #graph.dims<"$trips", 2>>
}
)";

static const char kSteady[] = R"(
!x = tensor<?x7xf32, #graph.dims<"n", 7>>
func.func @main(%trip: tensor<i64>, %condition: tensor<i1>, %x: !x, %w: tensor<7x7xf32>) -> (!x, tensor<i64>) {
  %zero = graph.constant dense<0> : tensor<i64>
  %r:2 = graph.loop %trip, %condition, %x, %zero : (tensor<i64>, tensor<i1>, !x, tensor<i64>) -> (!x, tensor<i64>) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %state: !x, %sum: tensor<i64>):
    %p = graph.matmul %state, %w : (!x, tensor<7x7xf32>) -> !x
    %t = graph.tanh %p : !x
    %s = graph.add %sum, %i : tensor<i64>
    graph.yield %c, %t, %s : tensor<i1>, !x, tensor<i64>
  }
  return %r#0, %r#1 : !x, tensor<i64>
}
)";

static const char kScan[] = R"(
func.func @main(%h: tensor<16xf32>, %xs: tensor<?x16xf32, #graph.dims<"n", 16>>, %bias: tensor<16xf32>)
    -> (tensor<16xf32>, tensor<?x16xf32, #graph.dims<"n", 16>>, tensor<?x16xf32, #graph.dims<"n", 16>>) {
  %r:3 = graph.scan %h, %xs, %xs {state_count = 1, reverse_inputs = array<i64: 1>, reverse_outputs = array<i64: 0>}
      : (tensor<16xf32>, tensor<?x16xf32, #graph.dims<"n", 16>>, tensor<?x16xf32, #graph.dims<"n", 16>>)
      -> (tensor<16xf32>, tensor<?x16xf32, #graph.dims<"n", 16>>, tensor<?x16xf32, #graph.dims<"n", 16>>) {
  ^bb0(%s: tensor<16xf32>, %e: tensor<16xf32>, %f: tensor<16xf32>):
    %a = graph.add %s, %e : tensor<16xf32>
    %b = graph.mul %a, %f : tensor<16xf32>
    %next = graph.sigmoid %b : tensor<16xf32>
    %c = graph.add %next, %bias : tensor<16xf32>
    graph.yield %next, %next, %c : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<16xf32>, tensor<?x16xf32, #graph.dims<"n", 16>>, tensor<?x16xf32, #graph.dims<"n", 16>>
}
)";

static const char kNested[] = R"(
func.func @main(%trip: tensor<i64>, %inner: tensor<i64>, %x: tensor<3xf32>) -> tensor<3xf32> {
  %true = graph.constant dense<true> : tensor<i1>
  %two = graph.constant dense<2> : tensor<i64>
  %zero = graph.constant dense<0> : tensor<i64>
  %r = graph.loop %trip, %true, %x : (tensor<i64>, tensor<i1>, tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %state: tensor<3xf32>):
    %rest = graph.mod %i, %two : tensor<i64>
    %even = graph.equal %rest, %zero : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %chosen = graph.if %even : (tensor<i1>) -> tensor<3xf32> {
      %n = graph.loop %inner, %true, %state : (tensor<i64>, tensor<i1>, tensor<3xf32>) -> tensor<3xf32> {
      ^bb0(%j: tensor<i64>, %d: tensor<i1>, %s: tensor<3xf32>):
        %a = graph.add %s, %x : tensor<3xf32>
        graph.yield %d, %a : tensor<i1>, tensor<3xf32>
      }
      graph.yield %n : tensor<3xf32>
    } else {
      %n = graph.neg %state : tensor<3xf32>
      graph.yield %n : tensor<3xf32>
    }
    graph.yield %c, %chosen : tensor<i1>, tensor<3xf32>
  }
  return %r : tensor<3xf32>
}
)";

// The inner loop packs what it finds, %own and %v, once each time it begins; the outer one packs
// %other in each iteration.
static const char kPacked[] = R"(
!x = tensor<?x20xf32, #graph.dims<"n", 20>>
!p = tensor<?x37xf32, #graph.dims<"n", 37>>
!w = tensor<20x37xf32>
!v = tensor<37x20xf32>
!u = tensor<20x20xf32>
func.func @main(%trip: tensor<i64>, %inner: tensor<i64>, %x: !x, %w: !w, %v: !v, %u: !u) -> (!x, !w) {
  %true = graph.constant dense<true> : tensor<i1>
  %r:3 = graph.loop %trip, %true, %x, %w, %u : (tensor<i64>, tensor<i1>, !x, !w, !u) -> (!x, !w, !u) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %state: !x, %own: !w, %other: !u):
    %n = graph.loop %inner, %true, %state : (tensor<i64>, tensor<i1>, !x) -> !x {
    ^bb1(%j: tensor<i64>, %d: tensor<i1>, %s: !x):
      %p = graph.matmul %s, %own : (!x, !w) -> !p
      %q = graph.matmul %p, %v : (!p, !v) -> !x
      %t = graph.tanh %q : !x
      graph.yield %d, %t : tensor<i1>, !x
    }
    %y = graph.matmul %n, %other : (!x, !u) -> !x
    %next = graph.sin %own : !w
    %later = graph.sin %other : !u
    graph.yield %c, %y, %next, %later : tensor<i1>, !x, !w, !u
  }
  return %r#0, %r#1 : !x, !w
}
)";

// Carried values change places, so that no buffer may be written before it is read.
static const char kSwap[] = R"(
func.func @main(%trip: tensor<i64>, %x: tensor<33xf32>, %y: tensor<33xf32>) -> (tensor<33xf32>, tensor<33xf32>, tensor<33xf32>) {
  %true = graph.constant dense<true> : tensor<i1>
  %r:3 = graph.loop %trip, %true, %x, %y, %x : (tensor<i64>, tensor<i1>, tensor<33xf32>, tensor<33xf32>, tensor<33xf32>)
      -> (tensor<33xf32>, tensor<33xf32>, tensor<33xf32>) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %a: tensor<33xf32>, %b: tensor<33xf32>, %d: tensor<33xf32>):
    %s = graph.add %a, %b : tensor<33xf32>
    graph.yield %c, %b, %a, %s : tensor<i1>, tensor<33xf32>, tensor<33xf32>, tensor<33xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<33xf32>, tensor<33xf32>, tensor<33xf32>
}
)";

// A loop that runs not once hands on its initial value, whose memory is then still needed.
static const char kNever[] = R"(
func.func @main(%trip: tensor<i64>, %x: tensor<33xf32>) -> (tensor<33xf32>, tensor<33xf32>) {
  %true = graph.constant dense<true> : tensor<i1>
  %start = graph.exp %x : tensor<33xf32>
  %r = graph.loop %trip, %true, %start : (tensor<i64>, tensor<i1>, tensor<33xf32>) -> tensor<33xf32> {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %a: tensor<33xf32>):
    %s = graph.add %a, %x : tensor<33xf32>
    graph.yield %c, %s : tensor<i1>, tensor<33xf32>
  }
  %places = graph.cumsum %x {axis = 0} : (tensor<33xf32>) -> tensor<33xf32>
  %more = graph.cumsum %places {axis = 0} : (tensor<33xf32>) -> tensor<33xf32>
  %sum = graph.add %r, %more : tensor<33xf32>
  return %sum, %more : tensor<33xf32>, tensor<33xf32>
}
)";

// Numbers of the run become amounts of padding and sizes.
static const char kBind[] = R"(
func.func @main(%x: tensor<?x5xf32, #graph.dims<"n", 5>>, %pads: tensor<2xi32>)
    -> (tensor<?x6xf32, #graph.dims<"$a + $b + n", 6>>, tensor<?x?xi64, #graph.dims<"$b", "2*$a">>) {
  graph.bind_sizes %pads {symbols = #graph.dims<"$a", "$b">, message = "a padding is %lld"} : tensor<2xi32>
  %v = graph.constant dense<0.5> : tensor<f32>
  %p = graph.pad %x, %v {low = #graph.dims<"$a", 0>, high = #graph.dims<"$b", 1>}
    : (tensor<?x5xf32, #graph.dims<"n", 5>>, tensor<f32>) -> tensor<?x6xf32, #graph.dims<"$a + $b + n", 6>>
  %i = graph.iota {axis = 1} : () -> tensor<?x?xi64, #graph.dims<"$b", "2*$a">>
  return %p, %i : tensor<?x6xf32, #graph.dims<"$a + $b + n", 6>>, tensor<?x?xi64, #graph.dims<"$b", "2*$a">>
}
)";

void addControl(Cases &cases) {
  auto add = [&](const std::string &name, const char *text, std::vector<Fill> fills,
                 std::vector<Sizes> runs) {
    cases.push_back({"control/" + name, [=](Model &m) { m.text(text, fills); }, std::move(runs)});
  };
  std::vector<Sizes> runs = {{{"n", 3}}, {{"n", 17}}, {{"n", 0}}};
  for (double truth : {0, 1}) {
    Fill fill = Fill::range(truth, truth);
    add("if " + std::to_string(int(truth)), kIf, {fill, Fill(), Fill()}, runs);
    add("steady " + std::to_string(int(truth)), kSteady, {Fill::range(4, 4), fill, Fill(), Fill()},
        runs);
  }
  for (double trip : {0, 1, 7}) {
    std::string label = " " + std::to_string(int(trip));
    Fill fill = Fill::range(trip, trip);
    add("growing" + label, kGrowing, {fill, Fill::range(20, 20), Fill()}, {});
    add("growing until" + label, kGrowing, {Fill::range(5, 5), fill, Fill()}, {});
    add("nested" + label, kNested, {fill, Fill::range(3, 3), Fill()}, {});
    add("never" + label, kNever, {fill, Fill::range(-0.1, 0.1)}, {});
    add("packed" + label, kPacked,
        {fill, Fill::range(3, 3), Fill(), Fill::range(-0.3, 0.3), Fill::range(-0.3, 0.3),
         Fill::range(-0.3, 0.3)},
        runs);
    add("swap" + label, kSwap, {fill, Fill(), Fill()}, {});
  }
  add("bind sizes", kBind, {Fill(), Fill::range(0, 9)}, runs);
  add("scan", kScan, {Fill(), Fill(), Fill()}, runs);
}

} // namespace heddle::ops
