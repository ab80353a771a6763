// RUN: heddle-opt %S/Inputs/row_norm.mlir --heddle-apply-card=card=%s | FileCheck %s
//
// row_norm: a row divided by what its elements sum up to, written in MLIR with vectors.
//
// Matches   one sum over the last dimension, then a pass over the same dimension, of f32. The square,
//           the mean, epsilon and the weights are pasted into the holes.
// Produces  @kernel below: two sums of eight lanes each, so that additions do not wait for each
//           other; then the row is written. A task has `rows` rows.
// Needs     nothing of the sizes: what is left of a row goes one by one.
// Why       it shows a kernel in MLIR: it needs no compiler of C where the model is compiled.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", priority = 15 : i64, dtypes = ["f32"], nest = "m:p* { n:s(sum) n:p }"}} {
  // CHECK: graph.group "norm"
  // CHECK-SAME: card = "row_norm"
  // CHECK-SAME: mechanism = "kernel.rows", rows = 4 : i64
  transform.named_sequence @schedule(
      %group: !transform.any_op {transform.readonly},
      %rows: !transform.param<i64> {transform.readonly,
        heddle.knob = [1, 2, 4, 8, 16], heddle.default = 4 : i64}) {
    transform.heddle.kernel "rows" %group rows %rows : !transform.any_op
    transform.yield
  }

  func.func private @rows(!program.ptr) -> i64
  func.func private @columns(!program.ptr) -> i64
  func.func private @knob_rows(!program.ptr) -> i64
  func.func private @read_0(!program.ptr, i64, i64) -> f32
  func.func private @read_0_lanes(!program.ptr, i64, i64) -> vector<8xf32>
  func.func private @write(!program.ptr, i64, i64, f32)
  func.func private @write_lanes(!program.ptr, i64, i64, f32)

  func.func @tasks(%g: !program.ptr) -> i64 {
    %rows = func.call @rows(%g) : (!program.ptr) -> i64
    %each = func.call @knob_rows(%g) : (!program.ptr) -> i64
    %tasks = arith.ceildivsi %rows, %each : i64
    return %tasks : i64
  }

  func.func @kernel(%g: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr) {
    %one = arith.constant 1 : i64
    %rows = func.call @rows(%g) : (!program.ptr) -> i64
    %each = func.call @knob_rows(%g) : (!program.ptr) -> i64
    %first = arith.muli %begin, %each : i64
    %beyond = arith.muli %end, %each : i64
    %last = arith.minsi %beyond, %rows : i64
    scf.for %row = %first to %last step %one : i64 {
      %sum = func.call @sum(%g, %row) : (!program.ptr, i64) -> f32
      func.call @normalise(%g, %row, %sum) : (!program.ptr, i64, f32) -> ()
    }
    return
  }

  func.func @sum(%g: !program.ptr, %row: i64) -> f32 {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %eight = arith.constant 8 : i64
    %sixteen = arith.constant 16 : i64
    %none = arith.constant dense<0.0> : vector<8xf32>
    %columns = func.call @columns(%g) : (!program.ptr) -> i64
    %rest = arith.remsi %columns, %sixteen : i64
    %full = arith.subi %columns, %rest : i64
    %a, %b = scf.for %i = %zero to %full step %sixteen iter_args(%p = %none, %q = %none)
        -> (vector<8xf32>, vector<8xf32>) : i64 {
      %next = arith.addi %i, %eight : i64
      %x = func.call @read_0_lanes(%g, %row, %i) : (!program.ptr, i64, i64) -> vector<8xf32>
      %y = func.call @read_0_lanes(%g, %row, %next) : (!program.ptr, i64, i64) -> vector<8xf32>
      %u = arith.addf %p, %x : vector<8xf32>
      %v = arith.addf %q, %y : vector<8xf32>
      scf.yield %u, %v : vector<8xf32>, vector<8xf32>
    }
    %both = arith.addf %a, %b : vector<8xf32>
    %lanes = vector.reduction <add>, %both : vector<8xf32> into f32
    %sum = scf.for %i = %full to %columns step %one iter_args(%p = %lanes) -> (f32) : i64 {
      %x = func.call @read_0(%g, %row, %i) : (!program.ptr, i64, i64) -> f32
      %u = arith.addf %p, %x : f32
      scf.yield %u : f32
    }
    return %sum : f32
  }

  func.func @normalise(%g: !program.ptr, %row: i64, %sum: f32) {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %eight = arith.constant 8 : i64
    %columns = func.call @columns(%g) : (!program.ptr) -> i64
    %rest = arith.remsi %columns, %eight : i64
    %full = arith.subi %columns, %rest : i64
    scf.for %i = %zero to %full step %eight : i64 {
      func.call @write_lanes(%g, %row, %i, %sum) : (!program.ptr, i64, i64, f32) -> ()
    }
    scf.for %i = %full to %columns step %one : i64 {
      func.call @write(%g, %row, %i, %sum) : (!program.ptr, i64, i64, f32) -> ()
    }
    return
  }
}
