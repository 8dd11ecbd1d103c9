// SPDX-License-Identifier: Apache-2.0
#include "kernel_store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

namespace crossover::cuda {
namespace {

/// Of this user alone; none where there is no such place, or others may write to it.
std::optional<std::filesystem::path> kernels_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path path;
  if (cache != nullptr && *cache == '/') {
    path = cache;
  } else if (home != nullptr && *home == '/') {
    path = std::filesystem::path(home) / ".cache";
  } else {
    return std::nullopt;
  }
  std::error_code none;
  std::filesystem::create_directories(path, none);
  path /= "crossover-kernels";
  static_cast<void>(mkdir(path.c_str(), S_IRWXU));
  struct stat of {};
  const bool is_own = lstat(path.c_str(), &of) == 0 && S_ISDIR(of.st_mode) &&
                      of.st_uid == geteuid() && (of.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  return is_own ? std::optional(path) : std::nullopt;
}

/// FNV-1a: names a file, which holds all that it stands for.
std::string name_of_kernel(std::string_view key) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : key) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

/// What a file begins with: so no key is the beginning of another.
std::string head_of(const std::string& key) { return std::to_string(key.size()) + "\n" + key; }

}  // namespace

std::string kept_kernel(const std::string& key) {
  const auto folder = kernels_folder();
  if (!folder) {
    return "";
  }
  std::ifstream in(*folder / name_of_kernel(key), std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  const std::string head = head_of(key);
  return all.starts_with(head) ? all.substr(head.size()) : "";
}

void keep_kernel(const std::string& key, const std::string& code) {
  const auto folder = kernels_folder();
  if (!folder) {
    return;
  }
  const std::filesystem::path file = *folder / name_of_kernel(key);
  // By a name of its own first, so that nobody reads a part.
  const std::filesystem::path part = file.string() + "." + std::to_string(getpid());
  std::ofstream out(part, std::ios::binary);
  out << head_of(key) << code;
  out.close();
  std::error_code none;
  if (out) {
    std::filesystem::rename(part, file, none);
  } else {
    std::filesystem::remove(part, none);
  }
}

}  // namespace crossover::cuda
