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
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "block.h"
#include "include/cuda_pipeline_primitives.h"
#include "races.h"
#include "state.h"

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

// A copy happens at once or when its thread waits for it, by chance: a kernel that reads too early
// finds what was there before.
namespace {

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct Copier {
  std::vector<Copy> open;                    ///< not yet committed
  std::vector<std::vector<Copy>> committed;  ///< the oldest first
};

/// By block and thread.
std::map<std::pair<unsigned, unsigned>, Copier>& threads() {
  static std::map<std::pair<unsigned, unsigned>, Copier> all;
  return all;
}
Copier& thread() { return threads()[{blockIdx.x, threadIdx.x}]; }

/// Whether it happens at once, which nothing speaks against.
bool begin_copy(void* shared, const void* global, std::size_t bytes) {
  const races::Aside aside;
  const auto misaligned = [bytes](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % bytes != 0;
  };
  if ((bytes != 4 && bytes != 8 && bytes != 16) || misaligned(shared) || misaligned(global)) {
    violation("an asynchronous copy of " + std::to_string(bytes) +
              " bytes, or to or from no multiple of as many");
    return false;
  }
  if (is_shared_of_another(shared)) {
    violation("an asynchronous copy into another block's shared memory");
    return false;
  }
  thread().open.push_back({shared, global, bytes});
  return state().pick(2) == 0;
}

/// Of the thread's groups the oldest, but for so many.
std::vector<Copy> take_committed(std::size_t but_groups) {
  const races::Aside aside;
  auto& committed = thread().committed;
  std::vector<Copy> taken;
  while (committed.size() > but_groups) {
    taken.insert(taken.end(), committed.front().begin(), committed.front().end());
    committed.erase(committed.begin());
  }
  return taken;
}

}  // namespace

void copy_async(void* shared, const void* global, std::size_t bytes) {
  if (begin_copy(shared, global, bytes)) {
    std::memcpy(shared, global, bytes);
  }
}

void commit_copies() {
  const races::Aside aside;
  Copier& copier = thread();
  copier.committed.push_back(std::move(copier.open));
  copier.open.clear();
}

void wait_for_copies(std::size_t but_groups) {
  for (const Copy& copy : take_committed(but_groups)) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
}

void forget_async_copies() { threads().clear(); }

std::string check_async_copies() {
  for (const auto& [place, copier] : threads()) {
    bool any = !copier.open.empty();
    for (const auto& group : copier.committed) {
      any |= !group.empty();
    }
    if (any) {
      return "thread " + std::to_string(place.second) +
             " ends without having waited for its asynchronous copies";
    }
  }
  return "";
}

}  // namespace cuda_host
