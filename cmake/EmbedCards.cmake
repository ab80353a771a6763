# EmbedCards: writes OUTPUT, a source with the text of each card below ROOT/schedules as a raw string.
# Run as a script: cmake -DROOT=... -DOUTPUT=... -P EmbedCards.cmake
file(GLOB paths RELATIVE ${ROOT} ${ROOT}/schedules/*/*.mlir)
list(SORT paths)
set(source "// The built-in cards; made from schedules/ by cmake/EmbedCards.cmake.\n")
string(APPEND source "#include \"compiler/warehouse/Builtin.h\"\n\n")
string(APPEND source "static const heddle::warehouse::BuiltinCard kCards[] = {\n")
foreach(path ${paths})
  file(READ ${ROOT}/${path} text)
  string(APPEND source "    {\"${path}\", R\"card(${text})card\"},\n")
endforeach()
string(APPEND source "};\n\nllvm::ArrayRef<heddle::warehouse::BuiltinCard>\n")
string(APPEND source "heddle::warehouse::builtinCards() { return kCards; }\n")
file(WRITE ${OUTPUT} "${source}")
