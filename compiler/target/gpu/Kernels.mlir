// Kernels of device 'cuda': arguments by value, a thread a task, accesses to global memory; and
// what the host asks the runtime for.
// RUN: heddle-opt %s --split-input-file --heddle-print-ptx=chip=sm_80 | FileCheck %s

// CHECK: .target sm_80
// CHECK: .visible .entry square_0(
// CHECK-NEXT: .param .align 8 .b8 square_0_param_0[24]
// CHECK-NOT: ld.f32
// CHECK: ld.global.f32 [[X:%f[0-9]*]]
// CHECK: mul.rn.f32 {{.*}}, [[X]], [[X]]
// CHECK: st.global.f32
// CHECK-NOT: func.func private @square.0
// The frame of the launch: the device, the kernel, its arguments, tasks and scratch.
// CHECK-LABEL: func.func @heddle_program_run
// CHECK-SAME: !program.ptr) -> i32
// CHECK: program.service device_area
// CHECK: program.service device_copy
// CHECK-NOT: program.launch
// CHECK: program.service device_launch
func.func private @square.0(%args: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr<"cuda">)
    attributes {program.words = 3} {
  %x = program.argument %args[1] : !program.ptr<"cuda">
  %y = program.argument %args[2] : !program.ptr<"cuda">
  %one = arith.constant 1 : i64
  scf.for %i = %begin to %end step %one : i64 {
    %from = program.at %x in "cuda"[%i] : f32
    %a = program.load %from in "cuda" align 4 : f32
    %b = arith.mulf %a, %a : f32
    %to = program.at %y in "cuda"[%i] : f32
    program.store %b, %to in "cuda" align 4 : f32
  }
  return
}
func.func @heddle_program_run(%run: !program.ptr) -> i32 {
  %tasks = arith.constant 100 : i64
  %bytes = arith.constant 400 : i64
  %none = arith.constant 0 : i64
  %arena = program.area %run arena in "cuda"
  %inputs = program.area %run inputs
  %input = program.load %inputs align 8 : !program.ptr
  program.transfer %arena in "cuda", %input, %bytes
  %args = program.array 3
  program.launch @square.0(%run, %args, %tasks, %none)
  %status = program.status %run
  return %status : i32
}

// -----

// A failure is the first one's, and kernels of a run that has failed do nothing.
// CHECK: .visible .entry check_0(
// CHECK: ld.volatile.global.u64
// CHECK: atom.global.cas.b64 {{.*}}, 0, 5;
// CHECK: st.global.u64 {{.*}}+8]
// CHECK: st.global.u64 {{.*}}+16]
func.func private @check.0(%args: !program.ptr, %begin: i64, %end: i64, %scratch: !program.ptr<"cuda">)
    attributes {program.words = 2} {
  %run = program.argument %args[0] : !program.ptr
  %places = program.argument %args[1] : !program.ptr<"cuda">
  %at = program.at %places in "cuda"[%begin] : i64
  %place = program.load %at in "cuda" align 8 : i64
  %limit = arith.constant 10 : i64
  %message = arith.constant 4 : i64
  %isWrong = arith.cmpi sge, %place, %limit : i64
  scf.if %isWrong {
    program.fail %run, %message, %place, %limit
  }
  return
}
func.func @heddle_program_run(%run: !program.ptr) -> i32 {
  %one = arith.constant 1 : i64
  %args = program.array 2
  program.launch @check.0(%run, %args, %one, %one)
  %status = program.status %run
  return %status : i32
}
