// SPDX-License-Identifier: Apache-2.0
// Blocks run one at a time, so __shared__ variables are static ones of functions: the program's own
// table of symbols knows them by their functions' namespaces, those of templates as well.
#include "shared_memory.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" const char __ehdr_start[];  // NOLINT(bugprone-reserved-identifier): the linker's

namespace cuda_host {
namespace {

struct Variable {
  volatile unsigned char* begin;
  std::size_t bytes;
};

/// Mangled: a variable within a function of crossover::cuda or of cuda_host::test.
bool is_of_a_kernel(const std::string& name) {
  constexpr std::array places{"_ZZN9crossover4cuda", "_ZZN9cuda_host4test"};
  return std::any_of(places.begin(), places.end(),
                     [&](const char* place) { return name.starts_with(place); });
}

template <class T>
const T* at(const std::vector<char>& file, std::size_t offset, std::size_t count) {
  if (offset + count * sizeof(T) > file.size()) {
    throw std::runtime_error("the program's file is cut off");
  }
  return reinterpret_cast<const T*>(file.data() + offset);
}

std::vector<Variable> find_variables() {
  std::ifstream stream("/proc/self/exe", std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
  const auto& header = *at<Elf64_Ehdr>(file, 0, 1);
  const auto* sections = at<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
  const auto base =
      header.e_type == ET_DYN ? reinterpret_cast<std::uintptr_t>(__ehdr_start) : std::uintptr_t{0};
  const auto* table = std::find_if(sections, sections + header.e_shnum,
                                   [](const Elf64_Shdr& s) { return s.sh_type == SHT_SYMTAB; });
  if (table == sections + header.e_shnum) {
    throw std::runtime_error("the program has no table of symbols, which names shared memory");
  }
  const std::size_t names = sections[table->sh_link].sh_offset;
  const std::size_t count = table->sh_size / sizeof(Elf64_Sym);
  const auto* symbols = at<Elf64_Sym>(file, table->sh_offset, count);
  std::vector<Variable> variables;
  for (const auto* symbol = symbols; symbol != symbols + count; ++symbol) {
    const bool is_variable = ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT &&
                             symbol->st_shndx < header.e_shnum &&
                             (sections[symbol->st_shndx].sh_flags & SHF_WRITE) != 0;
    if (is_variable && is_of_a_kernel(at<char>(file, names + symbol->st_name, 1))) {
      variables.push_back(
          {reinterpret_cast<volatile unsigned char*>(base + symbol->st_value), symbol->st_size});
    }
  }
  return variables;
}

}  // namespace

/// A sanitizer may count redzones to a variable.
__attribute__((no_sanitize("address", "undefined"))) void spoil_shared_memory() {
  static const std::vector<Variable> variables = find_variables();
  for (const Variable& variable : variables) {
    for (std::size_t i = 0; i < variable.bytes; ++i) {
      variable.begin[i] = 0xff;
    }
  }
}

}  // namespace cuda_host
