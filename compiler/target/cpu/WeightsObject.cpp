// WeightsObject: header, data, symbols, strings, section table, in this order. On x86-64 the
// section is a "large" one: linkers keep it apart, so that gigabytes of it stay out of reach of
// 32-bit offsets.

#include "compiler/target/cpu/WeightsObject.h"

#include <elf.h>

namespace heddle::cpu {
namespace {

constexpr int64_t page = 4096;
constexpr uint64_t largeSection = 0x10000000; // SHF_X86_64_LARGE

template <typename T> llvm::StringRef bytesOf(const T &value) {
  return llvm::StringRef(reinterpret_cast<const char *>(&value), sizeof value);
}

/// A string table, and where each of its strings begins.
struct Strings {
  std::string data = std::string(1, '\0');
  uint32_t add(const std::string &text) {
    uint32_t offset = data.size();
    data += text;
    data += '\0';
    return offset;
  }
};

Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t flags, int64_t offset, int64_t size,
                   uint64_t alignment) {
  Elf64_Shdr header{};
  header.sh_name = name;
  header.sh_type = type;
  header.sh_flags = flags;
  header.sh_offset = offset;
  header.sh_size = size;
  header.sh_addralign = alignment;
  return header;
}

Elf64_Ehdr fileHeader(bool isArm, int64_t sectionTable, int sections, int strings) {
  Elf64_Ehdr header{};
  const unsigned char ident[] = {ELFMAG0,    ELFMAG1,     ELFMAG2,    ELFMAG3,
                                 ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE};
  std::copy(std::begin(ident), std::end(ident), header.e_ident);
  header.e_type = ET_REL;
  header.e_machine = isArm ? EM_AARCH64 : EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_shoff = sectionTable;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = sections;
  header.e_shstrndx = strings;
  return header;
}

} // namespace

int writeWeightsObject(const target::Weights &weights, const std::string &symbol, bool isArm,
                       const std::string &path) {
  enum Index { None, Data, Symbols, Text, Stack, Count };
  Strings strings;
  uint32_t symbolName = strings.add(symbol);
  uint32_t dataName = strings.add((isArm ? ".rodata." : ".lrodata.") + symbol),
           symbolsName = strings.add(".symtab"), textName = strings.add(".strtab"),
           stackName = strings.add(".note.GNU-stack");
  int64_t dataSize = std::max<int64_t>(weights.size, 64);

  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = symbolName;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbols[1].st_other = STV_HIDDEN;
  symbols[1].st_shndx = Data;
  symbols[1].st_size = dataSize;

  int64_t symbolsAt = llvm::alignTo(page + dataSize, 8);
  int64_t textAt = symbolsAt + sizeof symbols;
  int64_t tableAt = llvm::alignTo(textAt + strings.data.size(), 8);
  Elf64_Shdr table[Count] = {};
  uint64_t flags = SHF_ALLOC | (isArm ? 0 : largeSection);
  table[Data] = section(dataName, SHT_PROGBITS, flags, page, dataSize, page);
  table[Symbols] = section(symbolsName, SHT_SYMTAB, 0, symbolsAt, sizeof symbols, 8);
  table[Symbols].sh_link = Text;
  table[Symbols].sh_info = 1; // the first symbol that is not local
  table[Symbols].sh_entsize = sizeof(Elf64_Sym);
  table[Text] = section(textName, SHT_STRTAB, 0, textAt, strings.data.size(), 1);
  table[Stack] = section(stackName, SHT_PROGBITS, 0, tableAt, 0, 1);

  FileWriter writer(path);
  writer.write(bytesOf(fileHeader(isArm, tableAt, Count, Text)));
  writer.zeros(page - writer.written());
  for (const target::Weights::Piece &piece : weights.pieces) {
    writer.zeros(page + piece.offset - writer.written());
    writer.write({piece.bytes.data(), piece.bytes.size()});
  }
  writer.zeros(symbolsAt - writer.written());
  writer.write(bytesOf(symbols));
  writer.write(strings.data);
  writer.zeros(tableAt - writer.written());
  writer.write(bytesOf(table));
  return writer.close();
}

} // namespace heddle::cpu
