// SPDX-License-Identifier: Apache-2.0
// Reading a JSON object by its keys, with errors that say where: for networks in files.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "crossover/dataset.h"

namespace crossover::json {

using Json = nlohmann::ordered_json;

inline constexpr std::int64_t largest_size = most_classes;  ///< of any size in a network

[[noreturn]] inline void refuse(const std::string& where, const std::string& what) {
  throw std::invalid_argument(where + ": " + what);
}

/// "one of a, b, c".
inline std::string one_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text.append(text.empty() ? "one of " : ", ").append(name);
  }
  return text;
}

/// The members of one JSON object, each asked for by its key.
class Members {
 public:
  Members(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) {
      refuse(where_, "it is to be an object, {...}");
    }
  }

  /// Null where it is absent.
  const Json* find(const std::string& key) {
    known_.insert(key);
    const auto at = json_.find(key);
    return at != json_.end() ? &*at : nullptr;
  }

  const Json& at(const std::string& key) {
    const Json* value = find(key);
    if (value == nullptr) {
      refuse(where_, "'" + key + "' is missing");
    }
    return *value;
  }

  std::string text(const std::string& key) {
    const Json& value = at(key);
    require(value.is_string(), key, "a text");
    return value.get<std::string>();
  }

  /// A list of such.
  template <class Is>
  const Json& list(const std::string& key, const Is& is, const std::string& of) {
    const Json& values = at(key);
    require(values.is_array() && std::all_of(values.begin(), values.end(), is), key,
            "a list of " + of);
    return values;
  }

  [[nodiscard]] const std::string& where() const { return where_; }

  void require(bool condition, const std::string& key, const std::string& what) const {
    if (!condition) {
      refuse(where_, "'" + key + "' is to be " + what);
    }
  }

  void refuse_others() const {
    for (const auto& [key, value] : json_.items()) {
      if (!known_.contains(key)) {
        refuse(where_, "'" + key + "' is nothing that it has");
      }
    }
  }

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string> known_;
};

inline bool is_whole(const Json& value, std::int64_t least) {
  return value.is_number_integer() && value >= least && value <= largest_size;
}

inline std::string whole_from(std::int64_t least) {
  return "whole numbers from " + std::to_string(least) + " to " + std::to_string(largest_size);
}

}  // namespace crossover::json
