// Prelude.cpp: the source that each library of a precompiled header must have.
