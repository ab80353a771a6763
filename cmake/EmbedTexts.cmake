# EmbedTexts: writes OUTPUT, a source with the text of each file of the report's page as a raw string.
# Run as a script: cmake -DFOLDER=... -DNAMES=a.css,b.js -DOUTPUT=... -P EmbedTexts.cmake
string(REPLACE "," ";" names "${NAMES}")
set(source "// The report's page; made from tools/heddle/report by cmake/EmbedTexts.cmake.\n")
string(APPEND source "#include \"tools/heddle/report/texts.h\"\n\n")
string(APPEND source "std::string heddle::cli::reportText(const std::string &name) {\n")
foreach(name ${names})
  file(READ ${FOLDER}/${name} text)
  string(APPEND source "  if (name == \"${name}\")\n    return R\"page(${text})page\";\n")
endforeach()
string(APPEND source "  return \"\";\n}\n")
file(WRITE ${OUTPUT} "${source}")
