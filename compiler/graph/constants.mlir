// Values of constants that cannot be read, and parts of stored matrices and of bits that do not fit
// together.
// RUN: heddle-opt %s --verify-diagnostics --split-input-file

func.func @constants(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO1: the value is neither dense nor a resource; write it as dense<[...]>}}
  %w = graph.constant sparse<[[0]], [1.0]> : tensor<4xf32>
  return %x : tensor<2xf32>
}

// -----

func.func @constants(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO1: the value is the resource 'nowhere', which the file does not have}}
  %w = graph.constant dense_resource<nowhere> : tensor<4xf32>
  return %x : tensor<2xf32>
}

// -----

func.func @constants(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO1: the value takes 16 bytes, but the resource 'short' has 4}}
  %w = graph.constant dense_resource<short> : tensor<4xf32>
  return %x : tensor<2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      short: "0x040000000000803F"
    }
  }
#-}

// -----

func.func @stored_of_three(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO1: the value has a part that takes 4 bytes, but the resource 'codes' has 3}}
  %w = graph.constant #graph.stored<codes = dense_resource<codes> : tensor<2x2xi8>> : tensor<2x2xf32>
  return %x : tensor<2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      codes: "0x01000000010203"
    }
  }
#-}

// -----

func.func @stored(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{codes of a stored matrix are a matrix of integers of 4 or 8 bits or of floats of 16 bits, but are of 'tensor<4x2xi32>'}}
  %w = graph.constant #graph.stored<codes = dense<1> : tensor<4x2xi32>> : tensor<4x2xf32>
  return %x : tensor<2xf32>
}

// -----

func.func @stored(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{a stored matrix with codes of 'tensor<4x2xi8>' is of f32 and of their shape, after sizes of 1, but is of 'tensor<4x3xf32>'}}
  %w = graph.constant #graph.stored<codes = dense<1> : tensor<4x2xi8>> : tensor<4x3xf32>
  return %x : tensor<2xf32>
}

// -----

func.func @stored(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{scales and zeros of a stored matrix are of f32, a row for each of equal blocks of the rows of 'tensor<4x2xi8>', but one is of 'tensor<3x2xf32>'}}
  %w = graph.constant #graph.stored<codes = dense<1> : tensor<4x2xi8>, scales = dense<1.0> : tensor<3x2xf32>> : tensor<4x2xf32>
  return %x : tensor<2xf32>
}

// -----

func.func @stored(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{scales and zeros of a stored matrix have one shape, but are of 'tensor<2x2xf32>' and 'tensor<4x2xf32>'}}
  %w = graph.constant #graph.stored<codes = dense<1> : tensor<4x2xi8>, scales = dense<1.0> : tensor<2x2xf32>, zeros = dense<1.0> : tensor<4x2xf32>> : tensor<4x2xf32>
  return %x : tensor<2xf32>
}

// -----

func.func @co2(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO2: bits of 'tensor<2x!graph.string>' are kept as 'i64' in the same shape, but the codes are of 'tensor<2xi32>'}}
  %w = graph.constant #graph.bits<dense<1> : tensor<2xi32>> : tensor<2x!graph.string>
  return %x : tensor<2xf32>
}

// -----

func.func @co2(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO2: bits of 'tensor<2x!graph.float4>' are kept as 'ui4' in the same shape, but the codes are of 'tensor<3xui4>'}}
  %w = graph.constant #graph.bits<dense<1> : tensor<3xui4>> : tensor<2x!graph.float4>
  return %x : tensor<2xf32>
}

// -----

func.func @co2(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO2: bits are a static tensor of float4, scale8 or string, but not 'tensor<2xui8>'}}
  %w = graph.constant #graph.bits<dense<1> : tensor<2xui8>> : tensor<2xui8>
  return %x : tensor<2xf32>
}

// -----

func.func @co2(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO2: codes of bits are neither dense nor a resource}}
  %w = graph.constant #graph.bits<sparse<[[0]], [1]> : tensor<2xui8>> : tensor<2x!graph.scale8>
  return %x : tensor<2xf32>
}

// -----

func.func @constants(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{CO1: the value takes 16 bytes, but the resource 'short' has 8}}
  %w = graph.constant #graph.bits<dense_resource<short> : tensor<2xi64>> : tensor<2x!graph.string>
  return %x : tensor<2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      short: "0x040000000100000000000000"
    }
  }
#-}
