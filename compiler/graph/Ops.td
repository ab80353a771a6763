// Ops.td: every op of the graph dialect, for the generators.
include "compiler/graph/Elementwise.td"
include "compiler/graph/Movement.td"
include "compiler/graph/Contraction.td"
include "compiler/graph/Control.td"
include "compiler/graph/hosted/Hosted.td"
include "compiler/graph/hosted/Routine.td"
