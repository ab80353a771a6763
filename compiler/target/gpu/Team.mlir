// Teams of threads: their ranks, values that they exchange, barriers and memory.
// RUN: heddle-opt %s --split-input-file --heddle-print-ptx=chip=sm_80 | FileCheck %s

// A warp: teams are as many as blocks have warps, and values of 64 bits are two words.
// CHECK: .visible .entry sum_0(
// CHECK: mov.u32 [[BLOCK:%r[0-9]+]], %ctaid.x
// CHECK: mov.u32 [[THREADS:%r[0-9]+]], %ntid.x
// CHECK: shr.u32 {{.*}}[[THREADS]], 5
// CHECK: and.b32 {{.*}}, 31
// CHECK: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1
// CHECK: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1
// CHECK: bar.warp.sync
func.func private @sum.0(%args: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr<"cuda">)
    attributes {program.words = 2, program.threads = 32} {
  %x = program.argument %args[1] : !program.ptr<"cuda">
  %rank = program.rank
  %at = program.at %x in "cuda"[%rank] : f64
  %own = program.load %at in "cuda" align 8 : f64
  %other = program.shuffle %own by 16 : f64
  %sum = arith.addf %own, %other : f64
  program.barrier
  program.store %sum, %at in "cuda" align 8 : f64
  return
}
func.func @heddle_program_run(%run: !program.ptr) -> i32 {
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i64
  %args = program.array 2
  program.launch @sum.0(%run, %args, %one, %none)
  %status = program.status %run
  return %status : i32
}

// -----

// A block, whose shared memory the launch makes room for; narrow values are words.
// CHECK: .extern .shared .align 16 .b8 heddle_shared[];
// CHECK: .visible .entry turn_0(
// CHECK-NOT: %ntid
// CHECK: heddle_shared
// CHECK: 48;
// CHECK: st.shared.u16
// CHECK: bar.sync 0
// CHECK: ld.shared.u16
// CHECK: shfl.sync.bfly.b32 {{.*}}, 1, 31, -1
func.func private @turn.0(%args: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr<"cuda">)
    attributes {program.words = 2, program.threads = 128} {
  %x = program.argument %args[1] : !program.ptr<"cuda">
  %last = arith.constant 127 : i64
  %unused = program.shared 40 in "cuda"
  %memory = program.shared 256 in "cuda"
  %rank = program.rank
  %from = program.at %x in "cuda"[%rank] : f16
  %own = program.load %from in "cuda" align 2 : f16
  %to = program.at %memory in "cuda"[%rank] : f16
  program.store %own, %to in "cuda" align 2 : f16
  program.barrier
  %mirrored = arith.subi %last, %rank : i64
  %there = program.at %memory in "cuda"[%mirrored] : f16
  %turned = program.load %there in "cuda" align 2 : f16
  %near = program.shuffle %turned by 1 : f16
  program.store %near, %from in "cuda" align 2 : f16
  return
}
func.func @heddle_program_run(%run: !program.ptr) -> i32 {
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i64
  %args = program.array 2
  program.launch @turn.0(%run, %args, %one, %none)
  %status = program.status %run
  return %status : i32
}

// -----

// Fragments of bf16: words as they are, and of f16: pairs.
// CHECK: .visible .entry multiply_0(
// CHECK: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
func.func private @multiply.0(%args: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr<"cuda">)
    attributes {program.words = 2, program.threads = 64} {
  %x = program.argument %args[1] : !program.ptr<"cuda">
  %memory = program.shared 1024 in "cuda"
  %rank = program.rank
  %place = program.at %memory in "cuda"[%rank] : f32
  %zero = arith.constant 0.0 : f32
  program.store %zero, %place in "cuda" align 4 : f32
  program.barrier
  %left = program.load_fragments %memory in "cuda" : vector<4xi32>
  %right = vector.extract_strided_slice %left {offsets = [2], sizes = [2], strides = [1]} : vector<4xi32> to vector<2xi32>
  %none = arith.constant dense<0.0> : vector<4xf32>
  %short = program.multiply_fragments bf16 %left, %right, %none : vector<4xi32>, vector<2xi32>, vector<4xf32>
  %half = program.multiply_fragments f16 %left, %right, %short : vector<4xi32>, vector<2xi32>, vector<4xf32>
  %first = vector.extract %half[0] : f32 from vector<4xf32>
  %to = program.at %x in "cuda"[%rank] : f32
  program.store %first, %to in "cuda" align 4 : f32
  return
}
func.func @heddle_program_run(%run: !program.ptr) -> i32 {
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i64
  %args = program.array 2
  program.launch @multiply.0(%run, %args, %one, %none)
  %status = program.status %run
  return %status : i32
}

// -----

// Copies meanwhile: 16 bytes, of which some are zeros, by rounds.
// CHECK: .visible .entry fetch_0(
// CHECK: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16, %r
// CHECK: cp.async.commit_group
// CHECK: cp.async.wait_group 2
func.func private @fetch.0(%args: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr<"cuda">)
    attributes {program.words = 2, program.threads = 64} {
  %x = program.argument %args[1] : !program.ptr<"cuda">
  %memory = program.shared 16 in "cuda"
  program.fetch %memory in "cuda", %x in "cuda", %end
  program.round
  program.await 2
  program.barrier
  %first = program.load %memory in "cuda" align 4 : f32
  program.store %first, %x in "cuda" align 4 : f32
  return
}
func.func @heddle_program_run(%run: !program.ptr) -> i32 {
  %one = arith.constant 1 : i64
  %none = arith.constant 0 : i64
  %args = program.array 2
  program.launch @fetch.0(%run, %args, %one, %none)
  %status = program.status %run
  return %status : i32
}
