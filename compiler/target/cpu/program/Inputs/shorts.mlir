func.func @shorts(%a: vector<16xi32>, %b: vector<16xi32>, %c: vector<16xf32>) -> vector<16xf32> {
  %d = program.dot bf16_bf16 %a, %b, %c : vector<16xf32>
  return %d : vector<16xf32>
}
