// SPDX-License-Identifier: Apache-2.0
// But for a cluster's, blocks run one at a time, so __shared__ variables are static ones of
// functions: the program's own table of symbols knows them by their functions' namespaces, those of
// templates as well.
#include "shared_memory.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "block.h"

extern "C" const char __ehdr_start[];  // NOLINT(bugprone-reserved-identifier): the linker's

namespace cuda_host {
namespace {

struct Variable {
  volatile unsigned char* begin;
  std::size_t bytes;
};

/// Mangled: a variable within a function of crossover::cuda or of cuda_host::test.
bool is_of_a_kernel(std::string_view name) {
  constexpr std::array places{"_ZZN9crossover4cuda", "_ZZN9cuda_host4test"};
  return std::any_of(places.begin(), places.end(),
                     [&](const char* place) { return name.starts_with(place); });
}

/// What begins at the offset. The whole file, of many megabytes, would take seconds under a
/// sanitizer, in each process.
template <class T>
std::vector<T> read(std::ifstream& file, std::size_t offset, std::size_t count) {
  std::vector<T> values(count);
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(reinterpret_cast<char*>(values.data()),
                 static_cast<std::streamsize>(count * sizeof(T)))) {
    throw std::runtime_error("the program's file is cut off");
  }
  return values;
}

std::vector<Variable> find_variables() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const Elf64_Ehdr header = read<Elf64_Ehdr>(file, 0, 1).front();
  const auto sections = read<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
  const auto base =
      header.e_type == ET_DYN ? reinterpret_cast<std::uintptr_t>(__ehdr_start) : std::uintptr_t{0};
  const auto table = std::find_if(sections.begin(), sections.end(),
                                  [](const Elf64_Shdr& s) { return s.sh_type == SHT_SYMTAB; });
  if (table == sections.end()) {
    throw std::runtime_error("the program has no table of symbols, which names shared memory");
  }
  const Elf64_Shdr& strings = sections.at(table->sh_link);
  const auto names = read<char>(file, strings.sh_offset, strings.sh_size);
  std::vector<Variable> variables;
  for (const Elf64_Sym& symbol :
       read<Elf64_Sym>(file, table->sh_offset, table->sh_size / sizeof(Elf64_Sym))) {
    const bool is_variable = ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT &&
                             symbol.st_shndx < header.e_shnum &&
                             (sections[symbol.st_shndx].sh_flags & SHF_WRITE) != 0;
    if (is_variable && is_of_a_kernel(&names.at(symbol.st_name))) {
      variables.push_back(
          {reinterpret_cast<volatile unsigned char*>(base + symbol.st_value), symbol.st_size});
    }
  }
  return variables;
}

/// Of its own size to the byte, so that AddressSanitizer sees what goes beyond it.
struct DynamicMemory {
  void* begin = nullptr;
  std::size_t bytes = 0;

  DynamicMemory() = default;
  DynamicMemory(const DynamicMemory&) = delete;
  DynamicMemory& operator=(const DynamicMemory&) = delete;
  ~DynamicMemory() { std::free(begin); }

  void spoil(std::size_t wanted) {
    if (bytes != wanted) {
      std::free(begin);
      begin = std::malloc(wanted);  // at multiples of 16
      bytes = wanted;
    }
    fill();
  }
  void fill() const {
    if (bytes > 0) {
      std::memset(begin, 0xff, bytes);
    }
  }
  [[nodiscard]] bool holds(const void* address) const {
    return std::less_equal<>()(begin, address) &&
           std::less<>()(address, static_cast<const char*>(begin) + bytes);
  }
};
/// Of each block that runs at once; they stay where they are.
std::deque<DynamicMemory>& dynamic_memories() {
  static std::deque<DynamicMemory> all(1);
  return all;
}

/// A sanitizer may count redzones to a variable. Word by word: it happens before each block.
__attribute__((no_sanitize("address", "undefined"))) void spoil_variables() {
  using Word [[gnu::may_alias]] = std::uint64_t;
  static const std::vector<Variable> variables = find_variables();
  for (const Variable& variable : variables) {
    std::size_t i = 0;
    for (; i + sizeof(Word) <= variable.bytes; i += sizeof(Word)) {
      *reinterpret_cast<volatile Word*>(variable.begin + i) = ~Word{0};
    }
    for (; i < variable.bytes; ++i) {
      variable.begin[i] = 0xff;
    }
  }
}

}  // namespace

void spoil_shared_memory(unsigned dynamic_bytes, unsigned blocks) {
  spoil_variables();
  dynamic_memories().resize(blocks);
  for (DynamicMemory& memory : dynamic_memories()) {
    memory.spoil(dynamic_bytes);
  }
}

void spoil_block(unsigned block) { dynamic_memories().at(block).fill(); }

void* dynamic_shared() { return dynamic_memories().at(cluster_rank()).begin; }

void* dynamic_shared_of(void* of, unsigned block, unsigned other) {
  const DynamicMemory& from = dynamic_memories().at(block);
  if (!from.holds(of)) {
    return nullptr;
  }
  return static_cast<char*>(dynamic_memories().at(other).begin) +
         (static_cast<char*>(of) - static_cast<char*>(from.begin));
}

bool is_shared_of_another(const void* address) {
  const auto& memories = dynamic_memories();
  for (std::size_t block = 0; block < memories.size(); ++block) {
    if (block != cluster_rank() && memories[block].holds(address)) {
      return true;
    }
  }
  return false;
}

}  // namespace cuda_host
