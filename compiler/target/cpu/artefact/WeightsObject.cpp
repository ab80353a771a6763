// WeightsObject: header, data, symbols, strings, section table, in this order. On x86-64 the
// section is a "large" one: linkers keep it apart, so that gigabytes of it stay out of reach of
// 32-bit offsets.

#include "compiler/target/cpu/artefact/WeightsObject.h"

#include "compiler/support/Files.h"
#include "compiler/support/Mapped.h"

#include <cerrno>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

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

int writeWeightsObject(const program::Weights &weights, const std::string &symbol, bool isArm,
                       const std::string &path, Data data) {
  enum Index { None, Numbers, Symbols, Text, Stack, Count };
  Strings strings;
  uint32_t symbolName = strings.add(symbol);
  uint32_t dataName = strings.add((isArm ? ".rodata." : ".lrodata.") + symbol),
           symbolsName = strings.add(".symtab"), textName = strings.add(".strtab"),
           stackName = strings.add(".note.GNU-stack");
  int64_t dataSize = std::max<int64_t>(weights.size, 64),
          inside = data == Data::Inside ? dataSize : 0;

  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = symbolName;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbols[1].st_other = STV_HIDDEN;
  symbols[1].st_shndx = Numbers;
  symbols[1].st_size = dataSize;

  int64_t symbolsAt = llvm::alignTo(page + inside, 8);
  int64_t textAt = symbolsAt + sizeof symbols;
  int64_t tableAt = llvm::alignTo(textAt + strings.data.size(), 8);
  Elf64_Shdr table[Count] = {};
  uint64_t flags = SHF_ALLOC | (isArm ? 0 : largeSection);
  table[Numbers] =
      section(dataName, inside ? SHT_PROGBITS : SHT_NOBITS, flags, page, dataSize, page);
  table[Symbols] = section(symbolsName, SHT_SYMTAB, 0, symbolsAt, sizeof symbols, 8);
  table[Symbols].sh_link = Text;
  table[Symbols].sh_info = 1; // the first symbol that is not local
  table[Symbols].sh_entsize = sizeof(Elf64_Sym);
  table[Text] = section(textName, SHT_STRTAB, 0, textAt, strings.data.size(), 1);
  table[Stack] = section(stackName, SHT_PROGBITS, 0, tableAt, 0, 1);

  support::FileWriter writer(path);
  writer.write(bytesOf(fileHeader(isArm, tableAt, Count, Text)));
  writer.zeros(page - writer.written());
  for (const program::Weights::Piece &piece : weights.pieces)
    if (inside) {
      writer.zeros(page + piece.offset - writer.written());
      writer.write({piece.bytes.data(), piece.bytes.size()});
      support::letPagesGo(piece.bytes);
    }
  writer.zeros(symbolsAt - writer.written());
  writer.write(bytesOf(symbols));
  writer.write(strings.data);
  writer.zeros(tableAt - writer.written());
  writer.write(bytesOf(table));
  return writer.close();
}

llvm::StringRef layoutWithHole() {
  // A list of sections makes ld.lld keep a section without data in the middle of a segment, as a
  // hole. The first section makes room for the headers in that segment, and each kind of memory
  // begins on a page of its own.
  return "SECTIONS {\n"
         "  . = SIZEOF_HEADERS;\n"
         "  .note.gnu.build-id : { *(.note.gnu.build-id) }\n"
         "  .lrodata : { *(.lrodata .lrodata.*) }\n"
         "  .dynsym : { *(.dynsym) }\n"
         "  .gnu.version : { *(.gnu.version) }\n"
         "  .gnu.version_r : { *(.gnu.version_r) }\n"
         "  .gnu.hash : { *(.gnu.hash) }\n"
         "  .hash : { *(.hash) }\n"
         "  .dynstr : { *(.dynstr) }\n"
         "  .rela.dyn : { *(.rela.dyn) }\n"
         "  .rela.plt : { *(.rela.plt) }\n"
         "  .rodata : { *(.rodata .rodata.*) }\n"
         "  .eh_frame : { *(.eh_frame) }\n"
         "  . = ALIGN(CONSTANT(MAXPAGESIZE));\n"
         "  .text : { *(.text .text.*) }\n"
         "  .plt : { *(.plt) }\n"
         "  . = ALIGN(CONSTANT(MAXPAGESIZE));\n"
         "  .tdata : { *(.tdata .tdata.*) }\n"
         "  .tbss : { *(.tbss .tbss.*) }\n"
         "  .init_array : { *(SORT_BY_INIT_PRIORITY(.init_array.*) .init_array) }\n"
         "  .fini_array : { *(SORT_BY_INIT_PRIORITY(.fini_array.*) .fini_array) }\n"
         "  .data.rel.ro : { *(.data.rel.ro .data.rel.ro.*) }\n"
         "  .dynamic : { *(.dynamic) }\n"
         "  .got : { *(.got) }\n"
         "  .got.plt : { *(.got.plt) }\n"
         "  . = ALIGN(CONSTANT(MAXPAGESIZE));\n"
         "  .data : { *(.data .data.*) }\n"
         "  .bss : { *(.bss .bss.*) }\n"
         "}\n";
}

namespace {

/// A linked file that is open for patching.
struct Patched {
  explicit Patched(const std::string &path) : file(open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
  ~Patched() {
    if (file >= 0)
      close(file);
  }
  template <typename T> std::vector<T> read(uint64_t offset, size_t count) const {
    std::vector<T> values(count);
    ssize_t bytes = count * sizeof(T);
    if (pread(file, values.data(), bytes, offset) != bytes)
      values.clear();
    return values;
  }
  int write(llvm::StringRef bytes, uint64_t offset) const {
    while (!bytes.empty()) {
      constexpr size_t largestCall = 1 << 30;
      ssize_t done = pwrite(file, bytes.data(), std::min(bytes.size(), largestCall), offset);
      if (done < 0 && errno != EINTR)
        return errno;
      bytes = bytes.drop_front(std::max<ssize_t>(done, 0));
      offset += std::max<ssize_t>(done, 0);
    }
    return 0;
  }
  int file;
};

/// Offset in the file of the section's bytes if the library begins at 0, no two segments share a
/// page, and one of them has these bytes.
std::optional<uint64_t> holeOf(const Elf64_Shdr &section, llvm::ArrayRef<Elf64_Phdr> segments) {
  uint64_t end = 0;
  std::optional<uint64_t> hole;
  bool isFirst = true;
  for (const Elf64_Phdr &segment : segments) {
    if (segment.p_type != PT_LOAD)
      continue;
    uint64_t begin = llvm::alignDown(segment.p_vaddr, page);
    if (isFirst ? begin != 0 : begin < end)
      return std::nullopt;
    isFirst = false;
    end = llvm::alignTo(segment.p_vaddr + segment.p_memsz, page);
    if (section.sh_addr >= segment.p_vaddr &&
        section.sh_addr + section.sh_size <= segment.p_vaddr + segment.p_filesz)
      hole = segment.p_offset + (section.sh_addr - segment.p_vaddr);
  }
  return hole;
}

} // namespace

int fillHole(const program::Weights &weights, const std::string &path, bool &isDone) {
  isDone = false;
  Patched file(path);
  auto header = file.read<Elf64_Ehdr>(0, 1);
  if (header.empty())
    return 0;
  auto segments = file.read<Elf64_Phdr>(header[0].e_phoff, header[0].e_phnum);
  auto sections = file.read<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
  auto found = llvm::find_if(sections, [&](const Elf64_Shdr &section) {
    return section.sh_type == SHT_NOBITS && (section.sh_flags & largeSection) &&
           section.sh_size >= uint64_t(weights.size);
  });
  auto hole = found == sections.end() ? std::nullopt : holeOf(*found, segments);
  if (!hole)
    return 0;
  found->sh_offset = *hole;
  int failure = 0;
  for (const program::Weights::Piece &piece : weights.pieces)
    if (!failure) {
      failure =
          file.write({piece.bytes.data(), piece.bytes.size()}, found->sh_offset + piece.offset);
      support::letPagesGo(piece.bytes);
    }
  found->sh_type = SHT_PROGBITS;
  if (!failure)
    failure = file.write(bytesOf(*found),
                         header[0].e_shoff + (found - sections.begin()) * sizeof(Elf64_Shdr));
  isDone = !failure;
  return failure;
}

} // namespace heddle::cpu
