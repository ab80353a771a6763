// Prelude.cpp: the translation unit that builds the precompiled header.
