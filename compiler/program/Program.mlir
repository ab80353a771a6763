// The program dialect: each op as text, and what the verifier refuses.
// RUN: heddle-opt %s --split-input-file --verify-diagnostics | heddle-opt --split-input-file | FileCheck %s

// CHECK-LABEL: @memory
// CHECK: program.at %{{.*}}[%{{.*}}] : f32
// CHECK: program.load %{{.*}} align 4 : f32
// CHECK: program.load invariant %{{.*}} align 4 : vector<8xf32>
// CHECK: program.store %{{.*}}, %{{.*}} align 4 : f32
// CHECK: program.masked_load %{{.*}}, %{{.*}}, %{{.*}} align 4 : vector<8xf32>
// CHECK: program.masked_store %{{.*}}, %{{.*}}, %{{.*}} align 4 : vector<8xf32>
// CHECK: program.gather %{{.*}}[%{{.*}}], %{{.*}}, %{{.*}} align 4 : vector<8xf32>
// CHECK: program.scatter %{{.*}}, %{{.*}}[%{{.*}}], %{{.*}} align 4 : vector<8xf32>
// CHECK: program.copy %{{.*}}, %{{.*}}, %{{.*}}
// CHECK: program.copy overlapping %{{.*}}, %{{.*}}, %{{.*}}
// CHECK: program.prefetch
func.func @memory(%p: !program.ptr, %q: !program.ptr, %i: i64, %places: vector<8xi64>, %mask: vector<8xi1>) {
  %a = program.at %p[%i] : f32
  %x = program.load %a align 4 : f32
  %v = program.load invariant %a align 4 : vector<8xf32>
  program.store %x, %q align 4 : f32
  %m = program.masked_load %a, %mask, %v align 4 : vector<8xf32>
  program.masked_store %m, %q, %mask align 4 : vector<8xf32>
  %g = program.gather %p[%places], %mask, %v align 4 : vector<8xf32>
  program.scatter %g, %q[%places], %mask align 4 : vector<8xf32>
  program.copy %q, %p, %i
  program.copy overlapping %q, %p, %i
  program.prefetch %a
  return
}

// CHECK-LABEL: @spaces
// CHECK-SAME: !program.ptr<"near">
// CHECK: program.area %{{.*}} arena in "near"
// CHECK: program.alloc %{{.*}}, %{{.*}} in "near"
// CHECK: program.at %{{.*}} in "near"[%{{.*}}] : f32
// CHECK: program.load %{{.*}} in "near" align 4 : f32
// CHECK: program.store %{{.*}}, %{{.*}} in "near" align 4 : f32
// CHECK: program.copy %{{.*}} in "near", %{{.*}} in "near", %{{.*}}
// CHECK: program.transfer %{{.*}} in "near", %{{.*}}, %{{.*}}
// CHECK: program.null in "near"
// CHECK: program.word %{{.*}} in "near"
// CHECK: program.pointer %{{.*}} in "near"
func.func @spaces(%run: !program.ptr, %p: !program.ptr<"near">, %i: i64) -> !program.ptr<"near"> {
  %arena = program.area %run arena in "near"
  %more = program.alloc %run, %i in "near"
  %a = program.at %p in "near"[%i] : f32
  %x = program.load %a in "near" align 4 : f32
  program.store %x, %more in "near" align 4 : f32
  program.copy %more in "near", %arena in "near", %i
  program.transfer %more in "near", %run, %i
  %n = program.null in "near"
  %w = program.word %n in "near"
  %q = program.pointer %w in "near"
  return %q : !program.ptr<"near">
}

// CHECK-LABEL: @words
// CHECK: program.array 3
// CHECK: program.null
// CHECK: program.word
// CHECK: program.pointer
func.func @words() -> !program.ptr {
  %a = program.array 3
  %n = program.null
  %w = program.word %n
  program.store %w, %a align 8 : i64
  %p = program.pointer %w
  return %p : !program.ptr
}

// CHECK-LABEL: @matrices
// CHECK: program.multiply_matrices bf16_bf16 %{{.*}}, %{{.*}}[%{{.*}}, 64, %{{.*}}], %{{.*}} pieces %{{.*}} steps %{{.*}} fetches 2 from %{{.*}} rows 32 columns 16
func.func @matrices(%p: !program.ptr, %n: i64) {
  program.multiply_matrices bf16_bf16 %p, %p[%n, 64, %n], %p pieces %n steps %n fetches 2 from %p rows 32 columns 16
  return
}

// CHECK-LABEL: @values
// CHECK: program.add
// CHECK: program.mul
// CHECK: program.freeze %{{.*}} : i64
// CHECK: program.dot i16_i16 %{{.*}}, %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK: program.dot u8_i8
// CHECK: program.dot u4_i8
// CHECK: program.dot bf16_bf16 %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK: program.permute %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK: program.lookup %{{.*}}, %{{.*}} : vector<8xi8>
func.func @values(%x: i64, %v: vector<8xi32>, %t: !program.ptr, %b: vector<8xi8>, %s: vector<8xf32>) -> i1 {
  %sum, %left = program.add %x, %x
  %product, %gone = program.mul %sum, %x
  %f = program.freeze %product : i64
  %d = program.dot i16_i16 %v, %v, %v : vector<8xi32>
  %e = program.dot u8_i8 %d, %v, %v : vector<8xi32>
  %u = program.dot u4_i8 %v, %v, %e : vector<8xi32>
  %g = program.dot bf16_bf16 %v, %v, %s : vector<8xf32>
  %p = program.permute %e, %v : vector<8xi32>
  %l = program.lookup %t, %b : vector<8xi8>
  return %gone : i1
}

// CHECK-LABEL: @run
// CHECK: program.argument %{{.*}}[0] : !program.ptr
// CHECK: program.argument invariant %{{.*}}[1] : i64
// CHECK: program.area %{{.*}} arena
// CHECK: program.area %{{.*}} services
// CHECK: program.status
// CHECK: program.alloc %{{.*}}, %{{.*}}
// CHECK: program.alloc_output %{{.*}}, 2, %{{.*}}
// CHECK: program.fail
// CHECK: program.launch @kernel(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK: program.service list_at %{{.*}}(%{{.*}}, %{{.*}})
func.func private @kernel(!program.ptr, i64, i64, !program.ptr)
func.func @run(%arguments: !program.ptr) -> i32 {
  %run = program.argument %arguments[0] : !program.ptr
  %n = program.argument invariant %arguments[1] : i64
  %arena = program.area %run arena
  %services = program.area %run services
  %status = program.status %run
  %memory = program.alloc %run, %n
  %output = program.alloc_output %run, 2, %n
  program.fail %run, %n, %n, %n
  program.launch @kernel(%run, %arguments, %n, %n)
  program.service list_at %services(%run, %memory)
  return %status : i32
}

// -----

func.func @lanes(%p: !program.ptr, %mask: vector<4xi1>, %v: vector<8xf32>) {
  // expected-error @+1 {{mask has a lane for each of result}}
  %x = "program.masked_load"(%p, %mask, %v) {alignment = 4 : i64} : (!program.ptr, vector<4xi1>, vector<8xf32>) -> vector<8xf32>
  return
}

// -----

func.func @dot(%a: vector<8xi32>, %b: vector<16xi32>) {
  // expected-error @+1 {{right has the lanes of the result as i32}}
  %x = "program.dot"(%a, %b, %a) {kind = 0 : i32} : (vector<8xi32>, vector<16xi32>, vector<8xi32>) -> vector<8xi32>
  return
}

// -----

func.func @matrices(%p: !program.ptr, %n: i64) {
  // expected-error @+1 {{X1: matrices must have 16 or 32 rows and columns, or 16 and up to 64, with 1 to 16 words of bf16_bf16, i8_i8 or u8_i8, but have 32 and 48 with 16 of bf16_bf16}}
  program.multiply_matrices bf16_bf16 %p, %p[%n, 64, %n], %p pieces %n steps %n fetches 0 from %p rows 32 columns 48
  return
}

// -----

func.func @dot(%a: vector<8xi32>, %b: vector<16xf32>) {
  // expected-error @+1 {{left has the lanes of the result as i32}}
  %x = "program.dot"(%a, %a, %b) {kind = 3 : i32} : (vector<8xi32>, vector<8xi32>, vector<16xf32>) -> vector<16xf32>
  return
}

// -----

func.func @dot(%a: vector<8xi32>, %b: vector<8xf32>) {
  // expected-error @+1 {{D1: sums of bf16_bf16 must be f32, but are 'i32'}}
  %x = program.dot bf16_bf16 %a, %a, %a : vector<8xi32>
  return
}

// -----

func.func @dot(%a: vector<8xi32>, %b: vector<8xf32>) {
  // expected-error @+1 {{D1: sums of u8_i8 must be i32, but are 'f32'}}
  %x = program.dot u8_i8 %a, %a, %b : vector<8xf32>
  return
}

// -----

func.func @argument(%p: !program.ptr) {
  // expected-error @+1 {{must be 64-bit signless integer or pointer}}
  %x = "program.argument"(%p) {slot = 1 : i64} : (!program.ptr) -> f32
  return
}

// -----

func.func @area(%p: !program.ptr) {
  // expected-error @+1 {{for attribute 'area' [arena, inputs, outputs, symbols, output_dims, weights, services, seed]}}
  %x = program.area %p stack
  return
}
