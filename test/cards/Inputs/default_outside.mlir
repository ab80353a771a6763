// A card whose knob has a default that it does not allow.
module attributes {transform.with_named_sequence, heddle.card = {
    target = "cpu", key = "p* { k:s(dot) }"}} {
  transform.named_sequence @schedule(%group: !transform.any_op {transform.readonly},
      %m: !transform.param<i64> {transform.readonly, heddle.knob = [4, 8], heddle.default = 7 : i64}) {
    transform.heddle.contract %group m %m : !transform.any_op
    transform.yield
  }
}
