// What the verifier of the program dialect refuses: each constraint of each op.
// RUN: heddle-opt %s --split-input-file --verify-diagnostics

func.func @m2_of_at(%p: !program.ptr, %i: i64) {
  // expected-error @+1 {{M2: the index counts integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64 or pointers, but the element is 'i1'}}
  %a = program.at %p[%i] : i1
  return
}

// -----

func.func @m2_of_at_vector(%p: !program.ptr, %i: i64) {
  // expected-error @+1 {{M2: the index counts integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64 or pointers, but the element is 'vector<8xf32>'}}
  %a = program.at %p[%i] : vector<8xf32>
  return
}

// -----

func.func @m1_of_load(%p: !program.ptr) {
  // expected-error @+1 {{M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64, pointers and vectors of such numbers of one dimension, but this is 'index'; an i1 or a narrower integer is in memory as i8}}
  %x = program.load %p align 8 : index
  return
}

// -----

func.func @m1_of_load_of_matrices(%p: !program.ptr) {
  // expected-error @+1 {{M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64, pointers and vectors of such numbers of one dimension, but this is 'vector<2x4xf32>'}}
  %x = program.load %p align 4 : vector<2x4xf32>
  return
}

// -----

func.func @m1_of_store(%p: !program.ptr, %x: i1) {
  // expected-error @+1 {{M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64, pointers and vectors of such numbers of one dimension, but this is 'i1'}}
  program.store %x, %p align 1 : i1
  return
}

// -----

func.func @m1_of_store_of_pointers(%p: !program.ptr, %x: tensor<4xf32>) {
  // expected-error @+1 {{M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64, pointers and vectors of such numbers of one dimension, but this is 'tensor<4xf32>'}}
  program.store %x, %p align 4 : tensor<4xf32>
  return
}

// -----

func.func @m1_of_masked_load(%p: !program.ptr, %m: vector<4xi1>, %x: vector<4xi4>) {
  // expected-error @+1 {{M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64, pointers and vectors of such numbers of one dimension, but this is 'vector<4xi4>'}}
  %y = program.masked_load %p, %m, %x align 1 : vector<4xi4>
  return
}

// -----

func.func @m1_of_masked_store(%p: !program.ptr, %m: vector<4xi1>, %x: vector<4xindex>) {
  // expected-error @+1 {{M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64, pointers and vectors of such numbers of one dimension, but this is 'vector<4xindex>'}}
  program.masked_store %x, %p, %m align 8 : vector<4xindex>
  return
}

// -----

func.func @m1_of_gather(%p: !program.ptr, %i: vector<4xi64>, %m: vector<4xi1>, %x: vector<4xi1>) {
  // expected-error @+1 {{M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64, pointers and vectors of such numbers of one dimension, but this is 'vector<4xi1>'}}
  %y = program.gather %p[%i], %m, %x align 1 : vector<4xi1>
  return
}

// -----

func.func @m1_of_scatter(%p: !program.ptr, %i: vector<4xi64>, %m: vector<4xi1>, %x: vector<4xi1>) {
  // expected-error @+1 {{M1: memory holds integers of 8, 16, 32 and 64 bits, f16, bf16, f32, f64, pointers and vectors of such numbers of one dimension, but this is 'vector<4xi1>'}}
  program.scatter %x, %p[%i], %m align 1 : vector<4xi1>
  return
}

// -----

func.func @a1_of_load_zero(%p: !program.ptr) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 4 bytes, but is 0}}
  %x = program.load %p align 0 : f32
  return
}

// -----

func.func @a1_of_load_three(%p: !program.ptr) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 4 bytes, but is 3}}
  %x = program.load %p align 3 : f32
  return
}

// -----

func.func @a1_of_load_negative(%p: !program.ptr) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 4 bytes, but is -8}}
  %x = program.load %p align -8 : f32
  return
}

// -----

func.func @a1_of_load_larger(%p: !program.ptr) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 4 bytes, but is 8}}
  %x = program.load %p align 8 : f32
  return
}

// -----

func.func @a1_of_load_of_vectors(%p: !program.ptr) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 32 bytes, but is 64}}
  %x = program.load %p align 64 : vector<8xf32>
  return
}

// -----

func.func @a1_of_load_of_pointers(%p: !program.ptr) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 8 bytes, but is 16}}
  %x = program.load %p align 16 : !program.ptr
  return
}

// -----

func.func @a1_of_store(%p: !program.ptr, %x: i8) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 1 bytes, but is 2}}
  program.store %x, %p align 2 : i8
  return
}

// -----

func.func @a1_of_masked_load(%p: !program.ptr, %m: vector<4xi1>, %x: vector<4xf32>) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 16 bytes, but is 12}}
  %y = program.masked_load %p, %m, %x align 12 : vector<4xf32>
  return
}

// -----

func.func @a1_of_masked_store(%p: !program.ptr, %m: vector<4xi1>, %x: vector<4xf32>) {
  // expected-error @+1 {{A1: alignment must be a power of two from 1 to 16 bytes, but is -4}}
  program.masked_store %x, %p, %m align -4 : vector<4xf32>
  return
}

// -----

func.func @a2_of_gather(%p: !program.ptr, %i: vector<4xi64>, %m: vector<4xi1>, %x: vector<4xf32>) {
  // expected-error @+1 {{A2: alignment must be a power of two from 1 to 4 bytes, but is 8}}
  %y = program.gather %p[%i], %m, %x align 8 : vector<4xf32>
  return
}

// -----

func.func @a2_of_scatter(%p: !program.ptr, %i: vector<4xi64>, %m: vector<4xi1>, %x: vector<4xf32>) {
  // expected-error @+1 {{A2: alignment must be a power of two from 1 to 4 bytes, but is 0}}
  program.scatter %x, %p[%i], %m align 0 : vector<4xf32>
  return
}

// -----

func.func @w1_of_array() {
  // expected-error @+1 {{W1: an array has 1 to 1048576 words, but this one has 0; program.alloc has room for more}}
  %a = program.array 0
  return
}

// -----

func.func @w1_of_array_too_large() {
  // expected-error @+1 {{W1: an array has 1 to 1048576 words, but this one has 1048577}}
  %a = program.array 1048577
  return
}

// -----

func.func @s1_of_argument(%p: !program.ptr) {
  // expected-error @+1 {{S1: slots are numbered from 0, but this is slot -1}}
  %x = program.argument %p[-1] : i64
  return
}

// -----

func.func @o1_of_alloc_output(%p: !program.ptr, %n: i64) {
  // expected-error @+1 {{O1: outputs are numbered from 0, but this is output -2}}
  %x = program.alloc_output %p, -2, %n
  return
}

// -----

func.func @f1_of_freeze(%x: tensor<4xf32>) {
  // expected-error @+1 {{F1: x must be a number, a pointer or a vector of numbers, but is of 'tensor<4xf32>'}}
  %y = program.freeze %x : tensor<4xf32>
  return
}

// -----

func.func @p1_of_permute(%v: vector<6xi32>) {
  // expected-error @+1 {{P1: the number of lanes must be a power of 2, but is 6}}
  %y = program.permute %v, %v : vector<6xi32>
  return
}

// -----

func.func @k1_of_launch(%p: !program.ptr, %n: i64) {
  // expected-error @+1 {{K1: there is no function 'missing' in the module; a kernel is a func.func of type '(!program.ptr, i64, i64, !program.ptr) -> ()'}}
  program.launch @missing(%p, %p, %n, %n)
  return
}

// -----

// expected-note @+1 {{the function is here}}
func.func private @other(!program.ptr, i64)
func.func @k2_of_launch(%p: !program.ptr, %n: i64) {
  // expected-error @+1 {{K2: kernel 'other' must be of type '(!program.ptr, i64, i64, !program.ptr) -> ()', but is of '(!program.ptr, i64) -> ()'}}
  program.launch @other(%p, %p, %n, %n)
  return
}

// -----

func.func private @two_spaces(%p: !program.ptr, %b: i64, %e: i64, %s: !program.ptr<"near">) {
  // expected-note @+1 {{the op is here}}
  %x = program.argument %p[1] : !program.ptr<"far">
  return
}
func.func @k3_of_launch(%p: !program.ptr, %n: i64) {
  // expected-error @+1 {{K3: kernel 'two_spaces' is for memory 'near', but has an op on memory 'far'}}
  program.launch @two_spaces(%p, %p, %n, %n)
  return
}

// -----

func.func @m3_of_copy(%p: !program.ptr, %q: !program.ptr<"near">, %n: i64) {
  // expected-error @+1 {{M3: a copy stays in one space, but this one is from the host's memory to memory 'near'; that is a program.transfer}}
  program.copy %q in "near", %p, %n
  return
}

// -----

func.func @m4_of_transfer(%p: !program.ptr<"near">, %n: i64) {
  // expected-error @+1 {{M4: a transfer is between two spaces, but this one stays in memory 'near'; that is a program.copy}}
  program.transfer %p in "near", %p in "near", %n
  return
}

// -----

func.func @s2_of_area(%run: !program.ptr) {
  // expected-error @+1 {{S2: of a run's areas only 'arena' and 'weights' are in other spaces than the host's, but 'inputs' is in memory 'near'}}
  %x = program.area %run inputs in "near"
  return
}

// -----

// expected-error @+1 {{the attribute 'program.inlined' is none of the dialect, which has 'program.inline', a unit attribute, and 'program.instruction', a text, and 'program.words' and 'program.threads', positive numbers, all of functions, and 'program.factor', a unit attribute of arith.truncf, and 'program.steps', one of arith.divf}}
func.func private @attribute(!program.ptr) attributes {program.inlined}

// -----

func.func private @far(%x: f32) {
  // expected-error @+1 {{'program.shuffle' op TH1: a value of at most 64 bits comes from a thread 1 to 31 ranks away, but this is 'f32' from 32}}
  %y = program.shuffle %x by 32 : f32
  return
}

// -----

func.func private @floats(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) {
  // expected-error @+1 {{'program.multiply_fragments' op TH3: fragments are of f16 or bf16, but these are of 'f32'}}
  %x = program.multiply_fragments f32 %a, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  return
}

// -----

func.func private @rounds() {
  // expected-error @+1 {{'program.await' op TH4: rounds are not negative, but these are -1}}
  program.await -1
  return
}

// -----

func.func private @nothing() {
  // expected-error @+1 {{'program.shared' op TH2: memory of a team is at least one byte, but is 0}}
  %x = program.shared 0
  return
}

// -----

// expected-error @+1 {{an instruction has a body of one block, which is what it means}}
func.func private @no_meaning(f32) -> f32 attributes {program.instruction = "neg $0"}

// -----

// expected-error @+1 {{an instruction has one result, which an op of its body makes}}
func.func private @no_op(%x: f32) -> f32 attributes {program.instruction = "mov $0"} {
  return %x : f32
}

// -----

// expected-error @+1 {{an instruction has ops of one result without effects, but this one has 'program.load'}}
func.func private @reads(%p: !program.ptr) -> f32 attributes {program.instruction = "load $0"} {
  %x = program.load %p align 4 : f32
  return %x : f32
}
