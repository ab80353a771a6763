// Functions as C99: each value is a variable, a vector a struct of its lanes, memory is reached
// through memcpy.
// RUN: heddle-opt %s --heddle-print-c | FileCheck %s

// CHECK: typedef struct h_float_x8 {
// CHECK-NEXT:   float v[8];
// CHECK-NEXT: } h_float_x8;

// An address is counted in bytes and may wrap; a load is a copy, so it may be anywhere.
// CHECK-LABEL: static float h_memory(unsigned char *a0, uint64_t a1) {
// CHECK-NEXT:   unsigned char *[[AT:v[0-9]+]] = a0 + (ptrdiff_t)((uint64_t)a1 * 4u);
// CHECK-NEXT:   float [[X:v[0-9]+]];
// CHECK-NEXT:   memcpy(&[[X]], [[AT]], sizeof [[X]]);
// CHECK-NEXT:   memcpy(a0, &[[X]], sizeof [[X]]);
// CHECK-NEXT:   return [[X]];
func.func @memory(%p: !program.ptr, %i: i64) -> f32 {
  %a = program.at %p[%i] : f32
  %x = program.load %a align 4 : f32
  program.store %x, %p align 4 : f32
  return %x : f32
}

// Only lanes whose mask is true touch memory.
// CHECK-LABEL: static void h_masked(
// CHECK:   h_float_x8 [[M:v[0-9]+]] = [[OTHERWISE:v[0-9]+]];
// CHECK-NEXT:   for (int i = 0; i < 8; ++i)
// CHECK-NEXT:     if (a1.v[i]) memcpy(&[[M]].v[i], a0 + (ptrdiff_t)(i * 4), sizeof [[M]].v[i]);
// CHECK:       if (a1.v[i]) memcpy(&[[G:v[0-9]+]].v[i], a0 + (ptrdiff_t)(a2.v[i] * 4), sizeof [[G]].v[i]);
// CHECK:       if (a1.v[i]) memcpy(a0 + (ptrdiff_t)(a2.v[i] * 4), &[[G]].v[i], sizeof [[G]].v[i]);
func.func @masked(%p: !program.ptr, %mask: vector<8xi1>, %places: vector<8xi64>) {
  %none = arith.constant dense<0.0> : vector<8xf32>
  %m = program.masked_load %p, %mask, %none align 4 : vector<8xf32>
  %g = program.gather %p[%places], %mask, %m align 4 : vector<8xf32>
  program.scatter %g, %p[%places], %mask align 4 : vector<8xf32>
  return
}

// A loop's values are variables that each step assigns.
// CHECK-LABEL: static float h_loop(unsigned char *a0, uint64_t a1) {
// CHECK:   float [[SUM:v[0-9]+]] = 0x0p+0f;
// CHECK-NEXT:   for (int64_t [[I:i[0-9]+]] = (int64_t)0u; [[I]] < (int64_t)a1; [[I]] += (int64_t)1u) {
// CHECK-NEXT:     uint64_t [[N:v[0-9]+]] = (uint64_t)[[I]];
// CHECK:          float [[NEXT:v[0-9]+]] = [[SUM]] + {{v[0-9]+}};
// CHECK-NEXT:     [[SUM]] = [[NEXT]];
// CHECK-NEXT:   }
// CHECK:   return [[SUM]];
func.func @loop(%p: !program.ptr, %count: i64) -> f32 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %start = arith.constant 0.0 : f32
  %sum = scf.for %i = %zero to %count step %one iter_args(%s = %start) -> f32 : i64 {
    %a = program.at %p[%i] : f32
    %x = program.load %a align 4 : f32
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  return %sum : f32
}

// Values that change places are kept while they do.
// CHECK-LABEL: h_swap(
// CHECK:          uint64_t [[KEPT:v[0-9]+]] = [[X:v[0-9]+]];
// CHECK-NEXT:     [[X]] = [[Y:v[0-9]+]];
// CHECK-NEXT:     [[Y]] = [[KEPT]];
func.func @swap(%a: i64, %b: i64, %count: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %x, %y = scf.for %i = %zero to %count step %one iter_args(%u = %a, %v = %b) -> (i64, i64) : i64 {
    scf.yield %v, %u : i64, i64
  }
  %d = arith.subi %x, %y : i64
  return %d : i64
}

// Integers are unsigned and wrap; what has a sign casts; what C leaves undefined is a function.
// CHECK-LABEL: static uint8_t h_integers(uint32_t a0, uint32_t a1, uint8_t a2) {
// CHECK:   uint32_t [[SUM:v[0-9]+]] = (uint32_t)((uint32_t)a0 + (uint32_t)a1);
// CHECK:   uint32_t [[QUOTIENT:v[0-9]+]] = (uint32_t)(h_divide((int32_t)[[SUM]], (int32_t)a1));
// CHECK:   uint32_t [[SHIFTED:v[0-9]+]] = (uint32_t)(h_shift_left([[QUOTIENT]], a0, 32u));
// CHECK:   uint8_t [[BYTES:v[0-9]+]] = (uint8_t)((uint32_t)a2 * (uint32_t)a2);
// CHECK:   uint8_t [[LESS:v[0-9]+]] = (uint8_t)((int32_t)[[SHIFTED]] < (int32_t)a1);
func.func @integers(%x: i32, %y: i32, %b: i8) -> i1 {
  %sum = arith.addi %x, %y : i32
  %quotient = arith.divsi %sum, %y : i32
  %shifted = arith.shli %quotient, %x : i32
  %bytes = arith.muli %b, %b : i8
  %wide = arith.extui %bytes : i8 to i32
  %less = arith.cmpi slt, %shifted, %y : i32
  %more = arith.cmpi slt, %wide, %y : i32
  %both = arith.andi %less, %more : i1
  return %both : i1
}

// A maximum passes NaN on; beside a constant one comparison does. Literals are exact.
// CHECK-LABEL: h_floats(
// CHECK:   h_maximumf(a0.v[i], a1.v[i]);
// CHECK:   !({{v[0-9]+}}.v[i] <= {{v[0-9]+}}.v[i]) ?
// CHECK:   h_to_int32(
func.func @floats(%x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xi32> {
  %zero = arith.constant dense<0.1> : vector<8xf32>
  %m = arith.maximumf %x, %y : vector<8xf32>
  %r = arith.maximumf %m, %zero : vector<8xf32>
  %n = arith.fptosi %r : vector<8xf32> to vector<8xi32>
  return %n : vector<8xi32>
}

// f16 is its bits, and its arithmetic is that of f32.
// CHECK-LABEL: static uint16_t h_halves(uint16_t a0, uint16_t a1) {
// CHECK-NOT: a0 +
// CHECK:   float {{v[0-9]+}} = {{v[0-9]+}} + {{v[0-9]+}};
func.func @halves(%x: f16, %y: f16) -> f16 {
  %s = arith.addf %x, %y : f16
  return %s : f16
}

// A prefetch is nothing in C.
// CHECK-LABEL: h_prefetch(
// CHECK-NEXT: (void)a0;
// CHECK-NEXT: }
func.func @prefetch(%p: !program.ptr) {
  program.prefetch %p
  return
}
