// Identity: the notes of the loaded objects that hold one function of each.

#include "compiler/cache/Identity.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/TargetParser/Host.h"

#include <dlfcn.h>
#include <link.h>

namespace heddle::cache {
namespace {

struct Wanted {
  uintptr_t address;
  std::string buildId;
};

std::string buildIdIn(const char *note, const char *end) {
  while (note + sizeof(ElfW(Nhdr)) <= end) {
    auto *header = reinterpret_cast<const ElfW(Nhdr) *>(note);
    const char *name = note + sizeof *header;
    const char *content = name + llvm::alignTo(header->n_namesz, 4);
    if (header->n_type == NT_GNU_BUILD_ID && llvm::StringRef(name, 3) == "GNU")
      return llvm::toHex(llvm::StringRef(content, header->n_descsz), /*LowerCase=*/true);
    note = content + llvm::alignTo(header->n_descsz, 4);
  }
  return "";
}

int visit(dl_phdr_info *object, size_t, void *data) {
  auto &wanted = *static_cast<Wanted *>(data);
  llvm::ArrayRef headers(object->dlpi_phdr, object->dlpi_phnum);
  bool holds = llvm::any_of(headers, [&](const ElfW(Phdr) & header) {
    return header.p_type == PT_LOAD &&
           wanted.address - (object->dlpi_addr + header.p_vaddr) < header.p_memsz;
  });
  if (!holds)
    return 0;
  for (const ElfW(Phdr) & header : headers)
    if (header.p_type == PT_NOTE && wanted.buildId.empty()) {
      auto *note = reinterpret_cast<const char *>(object->dlpi_addr + header.p_vaddr);
      wanted.buildId = buildIdIn(note, note + header.p_memsz);
    }
  return 1;
}

std::string identityOf(const void *address) {
  Wanted wanted{reinterpret_cast<uintptr_t>(address), ""};
  dl_iterate_phdr(visit, &wanted);
  if (!wanted.buildId.empty())
    return wanted.buildId;
  Dl_info info;
  llvm::sys::fs::file_status status;
  if (!dladdr(address, &info) || llvm::sys::fs::status(info.dli_fname, status))
    return "";
  return (info.dli_fname + llvm::Twine(' ') + llvm::Twine(status.getSize()) + " " +
          llvm::Twine(status.getLastModificationTime().time_since_epoch().count()))
      .str();
}

} // namespace

llvm::StringRef codeIdentity() {
  static const std::string identity = [] {
    std::string text = identityOf(reinterpret_cast<const void *>(&codeIdentity));
    text += "+" + identityOf(reinterpret_cast<const void *>(&llvm::sys::getHostCPUName));
    mlir::LogicalResult (*ofMLIR)(mlir::Operation *, bool) = &mlir::verify;
    text += "+" + identityOf(reinterpret_cast<const void *>(ofMLIR));
    return text;
  }();
  return identity;
}

} // namespace heddle::cache
