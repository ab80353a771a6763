func.func @shorts(%a: vector<4xi32>, %b: vector<4xi32>, %c: vector<4xf32>) -> vector<4xf32> {
  %d = program.dot bf16_bf16 %a, %b, %c : vector<4xf32>
  return %d : vector<4xf32>
}
