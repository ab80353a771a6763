/* elf.c: what dlopen does not check, or checks too late.
 *
 * dlopen maps a truncated file and dies of SIGBUS at the first touch past its end, and it runs a
 * library's constructors before anybody can ask whose library it is. So the file is read here
 * first: bounds of all segments and sections, machine, entry symbol, magic and version.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/executable/elf.h"

#include "runtime/base/status.h"
#include "runtime/executable/abi.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#else
#define OWN_MACHINE EM_NONE
#endif

typedef struct elf_file {
  const char *path;
  int descriptor;
  uint64_t bytes;
  Elf64_Ehdr header;
  Elf64_Phdr *segments;
  Elf64_Shdr *sections;
} elf_file_t;

static bool isInside(const elf_file_t *file, uint64_t offset, uint64_t bytes) {
  return offset <= file->bytes && bytes <= file->bytes - offset;
}

static bool readAt(const elf_file_t *file, uint64_t offset, void *to, uint64_t bytes) {
  if (!isInside(file, offset, bytes))
    return false;
  for (uint64_t done = 0; done < bytes;) {
    ssize_t part = pread(file->descriptor, (char *)to + done, bytes - done, (off_t)(offset + done));
    if (part < 0 && errno == EINTR)
      continue;
    if (part <= 0)
      return false;
    done += (uint64_t)part;
  }
  return true;
}

/* NULL when outside the file, too large for memory, or unreadable. */
static void *readBlock(const elf_file_t *file, uint64_t offset, uint64_t bytes) {
  if (!isInside(file, offset, bytes))
    return NULL;
  void *block = malloc(bytes + 1);
  if (block && !readAt(file, offset, block, bytes)) {
    free(block);
    return NULL;
  }
  if (block)
    ((char *)block)[bytes] = 0; /* ends a string table, whatever the file says */
  return block;
}

static const char *machineName(unsigned machine) {
  switch (machine) {
  case EM_X86_64:
    return "x86-64";
  case EM_386:
    return "x86 (32 bit)";
  case EM_AARCH64:
    return "aarch64";
  case EM_ARM:
    return "arm (32 bit)";
  case EM_RISCV:
    return "risc-v";
  default:
    return "another architecture";
  }
}

static heddle_status_t *truncated(const elf_file_t *file, const char *what, uint64_t end) {
  return heddle_status_make(HEDDLE_REFUSED,
                            "'%s' is truncated: its %s reaches to byte %llu, but the file has "
                            "%llu bytes; copy or compile it again",
                            file->path, what, (unsigned long long)end,
                            (unsigned long long)file->bytes);
}

static heddle_status_t *checkHeader(elf_file_t *file) {
  Elf64_Ehdr *header = &file->header;
  if (!readAt(file, 0, header, sizeof *header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return heddle_status_make(HEDDLE_REFUSED,
                              "'%s' is not a compiled model: it is no ELF shared library; compile "
                              "an ONNX model with 'heddle compile' first",
                              file->path);
  if (header->e_machine != OWN_MACHINE || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB)
    return heddle_status_make(HEDDLE_REFUSED,
                              "'%s' was compiled for %s, but this machine is %s; compile the model "
                              "for this machine",
                              file->path, machineName(header->e_machine), machineName(OWN_MACHINE));
  if (header->e_type != ET_DYN)
    return heddle_status_make(HEDDLE_REFUSED,
                              "'%s' is an ELF file of type %u, but a shared library (3) is needed; "
                              "link an object file with 'cc -shared' first",
                              file->path, header->e_type);
  return NULL;
}

static heddle_status_t *checkSegments(elf_file_t *file) {
  const Elf64_Ehdr *header = &file->header;
  uint64_t bytes = (uint64_t)header->e_phnum * sizeof(Elf64_Phdr);
  if (header->e_phentsize != sizeof(Elf64_Phdr) || !isInside(file, header->e_phoff, bytes))
    return truncated(file, "table of segments", header->e_phoff + bytes);
  if (!(file->segments = readBlock(file, header->e_phoff, bytes)))
    return heddle_status_make(HEDDLE_LIMIT, "cannot read the segments of '%s'", file->path);
  for (int i = 0; i < header->e_phnum; ++i) {
    const Elf64_Phdr *segment = &file->segments[i];
    if (!isInside(file, segment->p_offset, segment->p_filesz))
      return truncated(file, "code and data", segment->p_offset + segment->p_filesz);
  }
  return NULL;
}

static heddle_status_t *checkSections(elf_file_t *file) {
  const Elf64_Ehdr *header = &file->header;
  uint64_t bytes = (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
  if (header->e_shnum == 0 || header->e_shentsize != sizeof(Elf64_Shdr))
    return heddle_status_make(HEDDLE_REFUSED,
                              "'%s' has no section headers, so it cannot be checked to be whole; "
                              "do not strip them",
                              file->path);
  if (header->e_shstrndx >= header->e_shnum)
    return heddle_status_make(HEDDLE_REFUSED,
                              "'%s' is damaged: section %u shall hold names, but there are %u",
                              file->path, header->e_shstrndx, header->e_shnum);
  if (!isInside(file, header->e_shoff, bytes))
    return truncated(file, "table of sections", header->e_shoff + bytes);
  if (!(file->sections = readBlock(file, header->e_shoff, bytes)))
    return heddle_status_make(HEDDLE_LIMIT, "cannot read the sections of '%s'", file->path);
  for (int i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr *section = &file->sections[i];
    if (section->sh_type != SHT_NOBITS && !isInside(file, section->sh_offset, section->sh_size))
      return truncated(file, "last section", section->sh_offset + section->sh_size);
  }
  return NULL;
}

/* Address of the entry symbol, 0 when there is none. */
static uint64_t entryAddress(const elf_file_t *file) {
  uint64_t address = 0;
  for (int i = 0; i < file->header.e_shnum && !address; ++i) {
    const Elf64_Shdr *table = &file->sections[i];
    if (table->sh_type != SHT_DYNSYM || table->sh_link >= file->header.e_shnum)
      continue;
    const Elf64_Shdr *strings = &file->sections[table->sh_link];
    Elf64_Sym *symbols = readBlock(file, table->sh_offset, table->sh_size);
    char *names = readBlock(file, strings->sh_offset, strings->sh_size);
    for (uint64_t j = 0; symbols && names && j < table->sh_size / sizeof *symbols; ++j)
      if (symbols[j].st_name < strings->sh_size && symbols[j].st_shndx != SHN_UNDEF &&
          strcmp(names + symbols[j].st_name, HEDDLE_ENTRY_SYMBOL) == 0)
        address = symbols[j].st_value;
    free(symbols);
    free(names);
  }
  return address;
}

static heddle_status_t *checkEntry(const elf_file_t *file) {
  uint64_t address = entryAddress(file);
  uint32_t words[2] = {0, 0}; /* magic and abi_version, the first two members */
  bool isFound = false;
  for (int i = 0; address && i < file->header.e_phnum && !isFound; ++i) {
    const Elf64_Phdr *segment = &file->segments[i];
    if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
        address - segment->p_vaddr + sizeof words <= segment->p_filesz)
      isFound = readAt(file, segment->p_offset + (address - segment->p_vaddr), words, sizeof words);
  }
  if (!isFound || words[0] != HEDDLE_EXECUTABLE_MAGIC)
    return heddle_status_make(
        HEDDLE_REFUSED, "'%s' is a shared library, but not a compiled model: %s '%s'", file->path,
        isFound ? "no magic number at" : "it does not export", HEDDLE_ENTRY_SYMBOL);
  if (words[1] != HEDDLE_ABI_VERSION)
    return heddle_status_make(HEDDLE_REFUSED,
                              "'%s' was compiled by another version of Heddle (artefact version "
                              "%u, this runtime reads %u); compile the model again",
                              file->path, words[1], HEDDLE_ABI_VERSION);
  return NULL;
}

heddle_status_t *heddle_elf_check(const char *path) {
  elf_file_t file = {.path = path, .descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat about;
  heddle_status_t *status = NULL;
  if (file.descriptor < 0 || fstat(file.descriptor, &about) != 0)
    status = heddle_status_make(HEDDLE_USAGE, "cannot open '%s': %s", path, strerror(errno));
  else if (!S_ISREG(about.st_mode))
    status = heddle_status_make(HEDDLE_USAGE, "cannot load '%s': it is not a regular file", path);
  else
    file.bytes = (uint64_t)about.st_size;
  if (!status)
    status = checkHeader(&file);
  if (!status)
    status = checkSegments(&file);
  if (!status)
    status = checkSections(&file);
  if (!status)
    status = checkEntry(&file);
  free(file.segments);
  free(file.sections);
  if (file.descriptor >= 0)
    close(file.descriptor);
  return status;
}
