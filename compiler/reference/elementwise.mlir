// Elementwise ops against values written by hand.
// RUN: heddle-opt %s --heddle-interpret | FileCheck %s

func.func @main() -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3xf16>, tensor<4xi8>,
    tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<3xui8>, tensor<3xi8>, tensor<4xf32>, tensor<4xi1>,
    tensor<3xi64>, tensor<4xi32>, tensor<2xui8>, tensor<4xf32>, tensor<2xf8E4M3FN>, tensor<2xf8E4M3FN>,
    tensor<2xi32>, tensor<4xi1>, tensor<3xi8>, tensor<2xi4>, tensor<2xui4>, tensor<4xf32>, tensor<1xf32>, tensor<2xi1>) {
  %x = graph.constant dense<[0.5, 1.5, 2.5, -2.5]> : tensor<4xf32>
  // CHECK: 4xf32 [0, 2, 2, -2]
  %round = graph.round %x : tensor<4xf32>
  %nan = graph.constant dense<[0x7FC00000, 1.0, 0xFF800000, 3.0]> : tensor<4xf32>
  // CHECK-NEXT: 4xf32 [nan, 1.5, 2.5, 3]
  %max = graph.max %x, %nan : tensor<4xf32>
  // CHECK-NEXT: 4xf32 [nan, 1, -inf, -2.5]
  %min = graph.min %nan, %x : tensor<4xf32>
  // 2049 lies between two f16 values: ties to even.
  %h = graph.constant dense<[2048.0, 65504.0, 0.1]> : tensor<3xf16>
  %one = graph.constant dense<[1.0, 65504.0, 0.2]> : tensor<3xf16>
  // CHECK-NEXT: 3xf16 [2048, inf, 0.2998047]
  %half = graph.add %h, %one : tensor<3xf16>
  %a8 = graph.constant dense<[127, -128, 100, -1]> : tensor<4xi8>
  %b8 = graph.constant dense<[1, -1, 100, 2]> : tensor<4xi8>
  // CHECK-NEXT: 4xi8 [-128, 127, -56, 1]
  %wrap = graph.add %a8, %b8 : tensor<4xi8>
  %i = graph.constant dense<[7, -7, 7, -7]> : tensor<4xi32>
  %j = graph.constant dense<[3, 3, -3, -3]> : tensor<4xi32>
  // CHECK-NEXT: 4xi32 [2, -2, -2, 2]
  %div = graph.div %i, %j : tensor<4xi32>
  // CHECK-NEXT: 4xi32 [1, 2, -2, -1]
  %mod = graph.mod %i, %j : tensor<4xi32>
  // CHECK-NEXT: 4xi32 [1, -1, 1, -1]
  %fmod = graph.mod %i, %j {fmod = true} : tensor<4xi32>
  %u = graph.constant dense<[200, 129, 255]> : tensor<3xui8>
  %s = graph.constant dense<[1, 7, 8]> : tensor<3xui8>
  // CHECK-NEXT: 3xui8 [100, 1, 0]
  %shr = graph.shift_right %u, %s : tensor<3xui8>
  %si = graph.constant dense<[-1, 3, 64]> : tensor<3xi8>
  %sj = graph.constant dense<[1, 5, 1]> : tensor<3xi8>
  // CHECK-NEXT: 3xi8 [-2, 96, -128]
  %shl = graph.shift_left %si, %sj : tensor<3xi8>
  // CHECK-NEXT: 4xf32 [0.6224594, 0.8175745, 0.9241418, 0.07585818]
  %sigmoid = graph.sigmoid %x : tensor<4xf32>
  // CHECK-NEXT: 4xi1 [0, 0, 0, 1]
  %less = graph.less %x, %nan : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %base = graph.constant dense<[3, -2, 2]> : tensor<3xi64>
  %exponent = graph.constant dense<[4, 3, -1]> : tensor<3xi64>
  // CHECK-NEXT: 3xi64 [81, -8, 0]
  %pow = graph.pow %base, %exponent : tensor<3xi64>
  // CHECK-NEXT: 4xi32 [0, 1, 2, -2]
  %cast = graph.cast %x : (tensor<4xf32>) -> tensor<4xi32>
  %large = graph.constant dense<[300.0, -1.0]> : tensor<2xf32>
  // CHECK-NEXT: 2xui8 [44, 255]
  %narrow = graph.cast %large : (tensor<2xf32>) -> tensor<2xui8>
  // CHECK-NEXT: 4xf32 [0.5, 1.5, 2.5, 3]
  %select = graph.select %less, %nan, %x : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f8 = graph.constant dense<[1000.0, 0x7F800000]> : tensor<2xf32>
  // CHECK-NEXT: 2xf8E4M3FN [448, 448]
  %saturated = graph.cast %f8 : (tensor<2xf32>) -> tensor<2xf8E4M3FN>
  // CHECK-NEXT: 2xf8E4M3FN [{{-?}}nan, {{-?}}nan]
  %overflown = graph.cast %f8 {saturate = false} : (tensor<2xf32>) -> tensor<2xf8E4M3FN>
  // CHECK-NEXT: 2xi32 [1133903872, -1082130432]
  %bits = graph.bitcast %large : (tensor<2xf32>) -> tensor<2xi32>
  // CHECK-NEXT: 4xi1 [0, 0, 1, 0]
  %inf = graph.is_inf %nan {positive = false} : (tensor<4xf32>) -> tensor<4xi1>
  // CHECK-NEXT: 3xi8 [0, -4, -65]
  %not = graph.bit_not %si : tensor<3xi8>
  %i4 = graph.constant dense<[7, -8]> : tensor<2xi4>
  // CHECK-NEXT: 2xi4 [-2, 0]
  %add4 = graph.add %i4, %i4 : tensor<2xi4>
  // CHECK-NEXT: 2xui4 [7, 8]
  %ui4 = graph.cast %i4 : (tensor<2xi4>) -> tensor<2xui4>
  // CHECK-NEXT: 4xf32 [0.5, 1.5, 0.5, -0.5]
  %two = graph.constant dense<2.0> : tensor<4xf32>
  %rest = graph.mod %x, %two {fmod = true} : tensor<4xf32>
  // Single rounding from i64: 2^24 + 1 + 2^-29 of it would round twice through f64.
  %long = graph.constant dense<9007199791611905> : tensor<1xi64>
  // CHECK-NEXT: 1xf32 [9.0072{{[0-9]*}}e+15]
  %float = graph.cast %long : (tensor<1xi64>) -> tensor<1xf32>
  %t = graph.constant dense<[true, false]> : tensor<2xi1>
  // CHECK-NEXT: 2xi1 [0, 1]
  %nott = graph.bit_not %t : tensor<2xi1>
  return %round, %max, %min, %half, %wrap, %div, %mod, %fmod, %shr, %shl, %sigmoid, %less, %pow, %cast,
    %narrow, %select, %saturated, %overflown, %bits, %inf, %not, %add4, %ui4, %rest, %float, %nott
    : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3xf16>, tensor<4xi8>,
    tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<3xui8>, tensor<3xi8>, tensor<4xf32>, tensor<4xi1>,
    tensor<3xi64>, tensor<4xi32>, tensor<2xui8>, tensor<4xf32>, tensor<2xf8E4M3FN>, tensor<2xf8E4M3FN>,
    tensor<2xi32>, tensor<4xi1>, tensor<3xi8>, tensor<2xi4>, tensor<2xui4>, tensor<4xf32>, tensor<1xf32>, tensor<2xi1>
}
