// Ops.td: every op of the program dialect, for the generators.
include "compiler/program/Memory.td"
include "compiler/program/Run.td"
include "compiler/program/Threads.td"
include "compiler/program/Values.td"
