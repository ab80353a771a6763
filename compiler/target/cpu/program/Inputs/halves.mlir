func.func @halves(%a: vector<16xi32>, %b: vector<16xi32>, %c: vector<16xi32>) -> vector<16xi32> {
  %d = program.dot u4_i8 %a, %b, %c : vector<16xi32>
  return %d : vector<16xi32>
}
