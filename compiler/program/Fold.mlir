// What ops of the program dialect fold to, and near misses.
// RUN: heddle-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @first
// CHECK-SAME: (%[[P:.*]]: !program.ptr)
// CHECK-NEXT: return %[[P]]
func.func @first(%p: !program.ptr) -> !program.ptr {
  %zero = arith.constant 0 : i64
  %a = program.at %p[%zero] : f32
  return %a : !program.ptr
}

// CHECK-LABEL: @second
// CHECK: %[[A:.*]] = program.at
// CHECK-NEXT: return %[[A]]
func.func @second(%p: !program.ptr) -> !program.ptr {
  %one = arith.constant 1 : i64
  %a = program.at %p[%one] : f32
  return %a : !program.ptr
}

// CHECK-LABEL: @pointer_of_word
// CHECK-SAME: (%[[P:.*]]: !program.ptr)
// CHECK-NEXT: return %[[P]]
func.func @pointer_of_word(%p: !program.ptr) -> !program.ptr {
  %w = program.word %p
  %q = program.pointer %w
  return %q : !program.ptr
}

// CHECK-LABEL: @word_of_pointer
// CHECK-SAME: (%[[W:.*]]: i64)
// CHECK-NEXT: return %[[W]]
func.func @word_of_pointer(%w: i64) -> i64 {
  %p = program.pointer %w
  %v = program.word %p
  return %v : i64
}

// CHECK-LABEL: @word_of_argument
// CHECK: program.word
func.func @word_of_argument(%p: !program.ptr) -> i64 {
  %w = program.word %p
  return %w : i64
}

// CHECK-LABEL: @pointer_of_another_space
// CHECK: program.pointer
func.func @pointer_of_another_space(%p: !program.ptr) -> !program.ptr<"near"> {
  %w = program.word %p
  %q = program.pointer %w in "near"
  return %q : !program.ptr<"near">
}
