// A card that uses a handle after an op has consumed it.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.consumed}) {
    %again = transform.apply_registered_pass "cse" to %group
      : (!transform.any_op) -> !transform.any_op
    transform.heddle.serial %group : !transform.any_op
    transform.yield
  }
}
