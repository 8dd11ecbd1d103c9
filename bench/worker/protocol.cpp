// SPDX-License-Identifier: Apache-2.0
#include "worker/protocol.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace crossover::bench {
namespace {

bool is_text(const Json& one) { return one.is_string(); }
bool is_any_number(const Json& one) { return one.is_number(); }

template <bool (*is_right)(const Json&)>
bool are_all(const Json& list) {
  return std::all_of(list.begin(), list.end(), is_right);
}

/// What a value may be.
struct Kind {
  const char* words;
  bool (*has)(const Json& value);
};

namespace kinds {

constexpr Kind object{"an object", [](const Json& value) { return value.is_object(); }};
constexpr Kind texts_by_name{"an object of texts", [](const Json& value) {
                               return value.is_object() && are_all<is_text>(value);
                             }};
constexpr Kind numbers_by_name{"an object of numbers", [](const Json& value) {
                                 return value.is_object() && are_all<is_any_number>(value);
                               }};
constexpr Kind list{"a list", [](const Json& value) { return value.is_array(); }};
constexpr Kind texts{"a list of texts",
                     [](const Json& value) { return value.is_array() && are_all<is_text>(value); }};
constexpr Kind text{"a text", is_text};
constexpr Kind number{"a number from 0 on", [](const Json& value) {
                        return value.is_number() && value.get<double>() >= 0;
                      }};
constexpr Kind count{"a positive count", [](const Json& value) {
                       return value.is_number_integer() && value.get<std::int64_t>() > 0;
                     }};
constexpr Kind boolean{"true or false", [](const Json& value) { return value.is_boolean(); }};

}  // namespace kinds

/// What an answer must or may have.
struct Field {
  const char* request = "";  ///< empty: in answers to all
  const char* place = "";
  Kind kind = kinds::object;
  bool is_needed = false;
};

constexpr std::array fields{
    Field{"", "/outcome", kinds::text},
    Field{"", "/error_message", kinds::text},
    Field{"", "/out_of_memory", kinds::boolean},
    Field{"", "/device_failed", kinds::boolean},
    Field{"", "/worker_ends", kinds::boolean},
    Field{"", "/not_verified", kinds::object},
    Field{"", "/spent", kinds::numbers_by_name},
    Field{"describe", "/rows", kinds::list},
    Field{"describe", "/ladders", kinds::object},
    Field{"describe", "/ladder_batches", kinds::numbers_by_name},
    Field{"joules", "/joules", kinds::number},
    Field{"rows", "/rows", kinds::list, true},
    Field{"prepare", "/facts", kinds::object, true},
    Field{"prepare", "/facts/chosen", kinds::texts_by_name},
    Field{"prepare", "/facts/workload", kinds::text},
    Field{"prepare", "/facts/loss_first_epoch", kinds::number},
    Field{"prepare", "/facts/loss_first_step", kinds::number},
    Field{"prepare", "/facts/verification", kinds::object},
    Field{"prepare", "/facts/verification/tolerance", kinds::number},
    Field{"prepare", "/once", kinds::object, true},
    Field{"prepare", "/first_steps", kinds::object},
    Field{"repeat", "/times", kinds::object, true},
    Field{"repeat", "/times/real_time", kinds::number, true},
    Field{"repeat", "/times/cpu_time", kinds::number, true},
    Field{"repeat", "/times/iterations", kinds::count, true},
    Field{"repeat", "/doubts", kinds::texts},
    Field{"check", "/verdict", kinds::text, true},
    Field{"check", "/reason", kinds::text, true},
};

constexpr std::array fields_of_rows{
    Field{"", "/configuration", kinds::texts_by_name, true},
    Field{"", "/environment", kinds::texts_by_name},
};

/// "'times.real_time' is missing".
template <class Fields>
std::string fault_among(const Fields& wanted, const std::string& request, const Json& answer,
                        bool has_ended) {
  for (const Field& field : wanted) {
    if (*field.request != 0 && request != field.request) {
      continue;
    }
    const Json::json_pointer place(field.place);
    std::string name = std::string("'").append(field.place + 1).append("'");
    std::ranges::replace(name, '/', '.');
    if (!answer.contains(place)) {
      if (field.is_needed && !has_ended) {
        return name + " is missing";
      }
    } else if (!field.kind.has(answer.at(place))) {
      return name + " is not " + field.kind.words;
    }
  }
  return "";
}

}  // namespace

bool write_line(int to, const std::string& text) {
  const std::string line = text + "\n";
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t count = write(to, line.data() + done, line.size() - done);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    done += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  return true;
}

bool write_json(int to, const Json& json) {
  return write_line(to, json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool LineReader::wait(double& left) {
  constexpr double slice = 1;  // seconds: one that takes far longer was not this process's time
  constexpr double delay = 0.5;
  constexpr double milliseconds = 1e3;
  while (left > 0) {
    const double asked = std::min(left, slice);
    std::array files{pollfd{.fd = from_, .events = POLLIN, .revents = 0},
                     pollfd{.fd = aside_, .events = POLLIN, .revents = 0}};
    const auto begun = std::chrono::steady_clock::now();
    const int ready =
        poll(files.data(), files.size(), static_cast<int>(std::ceil(asked * milliseconds)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    const double counted = std::min(took.count(), asked + delay);
    paused_seconds_ += took.count() - counted;
    left -= counted;
    if (ready > 0 && files[1].revents != 0) {
      take_();
      aside_ = (files[1].revents & POLLIN) != 0 ? aside_ : -1;
    }
    if (ready > 0 && files[0].revents != 0) {
      return true;
    }
  }
  return false;
}

std::optional<std::string> LineReader::next(double limit_seconds) {
  for (std::size_t looked = 0;;) {
    if (const std::size_t end = read_.find('\n', looked); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    looked = read_.size();
    if (!wait(limit_seconds)) {
      throw Late();
    }
    std::array<char, 4096> block{};
    const ssize_t count = read(from_, block.data(), block.size());
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return std::nullopt;
    }
    read_.append(block.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  }
}

void serve(const Pipes& pipes, const std::function<Json(const Json& request)>& answer) {
  LineReader requests(pipes.from);
  while (const std::optional<std::string> line = requests.next()) {
    if (!write_json(pipes.to, answer(Json::parse(*line)))) {
      return;
    }
  }
}

std::string fault_of(const Json& request, const Json& answer) {
  const std::string what = request.at("do");
  const bool has_ended = answer.contains("outcome");
  if (has_ended && answer["outcome"] != "failed" && answer["outcome"] != "skipped") {
    return "'outcome' is neither 'failed' nor 'skipped'";
  }
  if ((answer.value("device_failed", Json()) == true ||
       answer.value("worker_ends", Json()) == true) &&
      !answer.contains("error_message")) {
    return "'error_message' is missing";
  }
  std::string fault = fault_among(fields, what, answer, has_ended);
  if (fault.empty() && answer.contains("rows")) {
    for (const Json& row : answer["rows"]) {
      fault = fault.empty() ? fault_among(fields_of_rows, what, row, false) : fault;
    }
  }
  return fault;
}

void tell(const Pipes& pipes, const std::string& doing) {
  write_json(pipes.to, {{"doing", doing}});
}

}  // namespace crossover::bench
