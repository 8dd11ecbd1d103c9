// SPDX-License-Identifier: Apache-2.0
#include "result_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "flag.h"

namespace crossover::bench {
namespace {

// A signal handler can reach nothing but globals. Both are written before the handler is set.
std::string farewell;        // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::string temporary_name;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

/// The file on disk is whole at any moment, so there is nothing to save: only a word to say.
void on_signal(int signal) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, farewell.data(), farewell.size());
  unlink(temporary_name.c_str());
  _exit(128 + signal);
}

void handle_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw std::runtime_error(path.string() + " can't be " + what + ": " + std::strerror(errno));
}

/// Writes beside the file and renames, so that a reader, or a crash, never meets half a file.
void replace(const std::filesystem::path& path, const std::string& text) {
  const int file = open(temporary_name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) {
    fail(path, "written");
  }
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0) {
      close(file);
      unlink(temporary_name.c_str());
      fail(path, "written");
    }
    done += static_cast<std::size_t>(count);
  }
  if (fsync(file) != 0 || close(file) != 0 || rename(temporary_name.c_str(), path.c_str()) != 0) {
    unlink(temporary_name.c_str());
    fail(path, "written");
  }
}

/// Text in a file name or a message may be no UTF-8; the file must be.
std::string text_of(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void append(std::string& lines, const std::vector<nlohmann::ordered_json>& items) {
  for (const nlohmann::ordered_json& item : items) {
    lines += (lines.empty() ? "\n  " : ",\n  ") + text_of(item, -1);
  }
}

std::string list(const std::string& lines) { return lines.empty() ? "[]" : "[" + lines + "\n ]"; }

}  // namespace

ResultFile::ResultFile(std::filesystem::path path, nlohmann::ordered_json context)
    : path_(std::move(path)), context_(std::move(context)) {
  const std::string asked = "--out=" + path_.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored) || !path_.has_filename()) {
    throw UsageError(asked + " is a folder; name a file");
  }
  if (std::filesystem::is_symlink(path_, ignored)) {
    path_ = std::filesystem::weakly_canonical(path_, ignored);
  }
  const bool exists = std::filesystem::exists(path_, ignored);
  if (exists && !std::filesystem::is_regular_file(path_, ignored)) {
    throw UsageError(
        asked + " is not a regular file, so it cannot be rewritten after each row; name another");
  }
  current_ = path_;
  if (exists) {
    current_ += ".partial";
  }
  if (path_.has_parent_path()) {
    std::filesystem::create_directories(path_.parent_path(), ignored);
  }
  temporary_name = current_.string() + "." + std::to_string(getpid()) + ".tmp";
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is a failed write, with its message
  try {
    write();
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string("--out: ") + error.what());
  }
  farewell = "\nbench: interrupted; the finished rows are in " + current_.string() + "\n";
  handle_signals(on_signal);
}

ResultFile::~ResultFile() { handle_signals(SIG_DFL); }

void ResultFile::add(const std::vector<nlohmann::ordered_json>& rows,
                     const std::vector<nlohmann::ordered_json>& entries) {
  append(rows_, rows);
  append(entries_, entries);
  write();
}

std::filesystem::path ResultFile::finish(bool successful) {
  nlohmann::ordered_json& ours = context_["crossover"];
  std::array<double, 3> load{};
  if (getloadavg(load.data(), static_cast<int>(load.size())) == static_cast<int>(load.size())) {
    ours["load_average_end"] = load;
  }
  ours["complete"] = true;
  write();
  if (successful && current_ != path_) {
    std::filesystem::rename(current_, path_);
    current_ = path_;
  }
  return current_;
}

void ResultFile::write() const {
  std::string context = text_of(context_, 1);
  for (std::size_t at = 0; (at = context.find('\n', at)) != std::string::npos; ++at) {
    context.insert(at + 1, 1, ' ');
  }
  replace(current_, "{\n \"context\": " + context + ",\n \"rows\": " + list(rows_) +
                        ",\n \"benchmarks\": " + list(entries_) + "\n}\n");
}

}  // namespace crossover::bench
