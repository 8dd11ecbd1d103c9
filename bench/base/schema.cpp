// SPDX-License-Identifier: Apache-2.0
#include "base/schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <stdexcept>

#include "schema_text.h"

namespace crossover::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string fault_by(const Json& rules, const Json& value, const std::string& place);

bool fits(const Json& rules, const Json& value) { return fault_by(rules, value, "").empty(); }

std::string within(const std::string& place, const std::string& name) {
  constexpr std::size_t longest = 60;
  return (place.empty() ? "" : place + ".") + name.substr(0, longest);
}

std::string quoted(const std::string& place) { return "'" + place + "'"; }

/// A number of JSON has no kind: 5.0 is a whole one. Beyond 2^53 a double has no fractions to tell.
bool is_whole(const Json& value) {
  constexpr double exact = 9007199254740992;
  const double number = value.is_number() ? value.get<double>() : NAN;
  return std::abs(number) <= exact && number == std::trunc(number);
}

struct JsonType {
  const char* name;
  const char* words;
  bool (*has)(const Json& value);
};

constexpr std::array types{
    JsonType{"string", "a text", [](const Json& value) { return value.is_string(); }},
    JsonType{"object", "an object", [](const Json& value) { return value.is_object(); }},
    JsonType{"array", "a list", [](const Json& value) { return value.is_array(); }},
    JsonType{"boolean", "true or false", [](const Json& value) { return value.is_boolean(); }},
    JsonType{"integer", "a whole number", is_whole},
    JsonType{"number", "a number", [](const Json& value) { return value.is_number(); }},
    JsonType{"null", "null", [](const Json& value) { return value.is_null(); }},
};

const JsonType& type_of(const std::string& name) {
  const auto* const at =
      std::ranges::find_if(types, [&](const JsonType& type) { return type.name == name; });
  return at == types.end() ? throw std::logic_error("no type is called " + name) : *at;
}

std::string fault_of_type(const Json& rule, const Json& value, const std::string& place) {
  const Json names = rule.is_array() ? rule : Json::array({rule});
  std::string words;
  for (const auto& name : names) {
    const JsonType& type = type_of(name);
    if (type.has(value)) {
      return "";
    }
    words.append(words.empty() ? "" : " or ").append(type.words);
  }
  return quoted(place) + " is not " + words;
}

std::string fault_of_list(const Json& rule, const Json& value, const std::string& place) {
  for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
    std::string fault = fault_by(rule, value[i], place + "[" + std::to_string(i) + "]");
    if (!fault.empty()) {
      return fault;
    }
  }
  return "";
}

/// By the rules of each member, or those of members without any: `rules` have both.
std::string fault_of_members(const Json& rules, const Json& value, const std::string& place) {
  static const Json none = Json::object();
  if (!value.is_object()) {
    return "";
  }
  const auto own = rules.find("properties");
  const auto others = rules.find("additionalProperties");
  for (const auto& [name, one] : value.items()) {
    const Json* rule = own != rules.end() && own->contains(name) ? &own->at(name) : nullptr;
    if (rule == nullptr && others != rules.end()) {
      if (*others == false) {
        return quoted(within(place, name)) + " is not known there";
      }
      rule = &*others;
    }
    std::string fault = fault_by(rule == nullptr ? none : *rule, one, within(place, name));
    if (!fault.empty()) {
      return fault;
    }
  }
  return "";
}

const Json& whole_schema();

/// A value, and a keyword of the schema that it is held against: `rules` has those beside it.
struct Held {
  const Json& rule;
  const Json& rules;
  const Json& value;
  const std::string& place;
};

struct Keyword {
  const char* name;
  std::string (*fault)(const Held& held);
};

std::string no_rule(const Held& /*held*/) { return ""; }

/// `is_right`, or the fault in these words.
std::string fault_unless(bool is_right, const Held& held, const std::string& words) {
  return is_right ? "" : quoted(held.place) + " " + words;
}

/// `against`: what the value of a number must be, by its rule.
template <class Against>
std::string fault_of_number(const Held& held, const std::string& words, Against against) {
  return fault_unless(
      !held.value.is_number() || against(held.value.get<double>(), held.rule.get<double>()), held,
      words + " " + held.rule.dump());
}

/// The whole text must match, as each pattern begins with ^ and ends with $.
bool matches(const std::string& text, const std::string& pattern) {
  constexpr std::size_t longest = 200;  // std::regex recurses with each letter
  return text.size() <= longest && std::regex_match(text, std::regex(pattern));
}

constexpr std::array keywords{
    Keyword{"$comment", no_rule},
    Keyword{"$id", no_rule},
    Keyword{"$schema", no_rule},
    Keyword{"title", no_rule},
    Keyword{"definitions", no_rule},
    Keyword{"then", no_rule},  // "if" reads both
    Keyword{"else", no_rule},
    Keyword{"$ref",
            [](const Held& held) {
              const std::string to = held.rule;  // "#/definitions/text"
              const Json::json_pointer part(to.substr(1));
              return fault_by(whole_schema().at(part), held.value, held.place);
            }},
    Keyword{"type",
            [](const Held& held) { return fault_of_type(held.rule, held.value, held.place); }},
    Keyword{"const",
            [](const Held& held) {
              return fault_unless(held.value == held.rule, held, "is not " + held.rule.dump());
            }},
    Keyword{"enum",
            [](const Held& held) {
              const bool is_right = std::ranges::find(held.rule, held.value) != held.rule.end();
              return fault_unless(is_right, held, "is none of " + held.rule.dump());
            }},
    Keyword{
        "minimum",
        [](const Held& held) { return fault_of_number(held, "is below", std::greater_equal<>()); }},
    Keyword{
        "exclusiveMinimum",
        [](const Held& held) { return fault_of_number(held, "is not above", std::greater<>()); }},
    Keyword{
        "maximum",
        [](const Held& held) { return fault_of_number(held, "is above", std::less_equal<>()); }},
    Keyword{"minLength",  // 1, of all that have it
            [](const Held& held) {
              const bool is_right =
                  !held.value.is_string() || !held.value.get_ref<const std::string&>().empty();
              return fault_unless(is_right, held, "is empty");
            }},
    Keyword{"pattern",
            [](const Held& held) {
              const std::string pattern = held.rule;
              const bool is_right = !held.value.is_string() || matches(held.value, pattern);
              return fault_unless(is_right, held, "does not match " + pattern);
            }},
    Keyword{"minItems",
            [](const Held& held) {
              const bool is_right =
                  !held.value.is_array() || held.value.size() >= held.rule.get<std::size_t>();
              return fault_unless(is_right, held,
                                  "has fewer than " + held.rule.dump() + " elements");
            }},
    Keyword{"maxItems",
            [](const Held& held) {
              const bool is_right =
                  !held.value.is_array() || held.value.size() <= held.rule.get<std::size_t>();
              return fault_unless(is_right, held,
                                  "has more than " + held.rule.dump() + " elements");
            }},
    Keyword{"uniqueItems",
            [](const Held& held) {
              const std::set<Json> different(held.value.begin(), held.value.end());
              const bool is_right = !held.value.is_array() || different.size() == held.value.size();
              return fault_unless(is_right, held, "has an element twice");
            }},
    Keyword{"items",
            [](const Held& held) { return fault_of_list(held.rule, held.value, held.place); }},
    Keyword{"required",
            [](const Held& held) -> std::string {
              for (const std::string name : held.rule) {
                if (held.value.is_object() && !held.value.contains(name)) {
                  return quoted(within(held.place, name)) + " is missing";
                }
              }
              return "";
            }},
    Keyword{"properties",
            [](const Held& held) { return fault_of_members(held.rules, held.value, held.place); }},
    Keyword{"additionalProperties",  // "properties" reads both
            [](const Held& held) {
              return held.rules.contains("properties")
                         ? ""
                         : fault_of_members(held.rules, held.value, held.place);
            }},
    Keyword{"allOf",
            [](const Held& held) -> std::string {
              for (const Json& each : held.rule) {
                if (std::string fault = fault_by(each, held.value, held.place); !fault.empty()) {
                  return fault;
                }
              }
              return "";
            }},
    Keyword{"anyOf",
            [](const Held& held) {
              const bool is_right = std::ranges::any_of(
                  held.rule, [&](const Json& one) { return fits(one, held.value); });
              return is_right ? "" : fault_by(held.rule.front(), held.value, held.place);
            }},
    Keyword{"not",
            [](const Held& held) {
              return fault_unless(!fits(held.rule, held.value), held,
                                  "must not be " + held.rule.dump());
            }},
    Keyword{"if",
            [](const Held& held) {
              const auto next = held.rules.find(fits(held.rule, held.value) ? "then" : "else");
              return next == held.rules.end() ? "" : fault_by(*next, held.value, held.place);
            }},
};

const Keyword& keyword_of(const std::string& name) {
  const auto* const at =
      std::ranges::find_if(keywords, [&](const Keyword& one) { return one.name == name; });
  return at == keywords.end() ? throw std::logic_error("files/schema.json has '" + name +
                                                       "'; add it to bench/base/schema.cpp")
                              : *at;
}

std::string fault_by(const Json& rules, const Json& value, const std::string& place) {
  for (const auto& [name, rule] : rules.items()) {
    if (std::string fault = keyword_of(name).fault({rule, rules, value, place}); !fault.empty()) {
      return fault;
    }
  }
  return "";
}

/// Throws std::logic_error where these rules, or those within them, have a keyword that is not
/// known here.
void require_known(const Json& rules) {
  for (const auto& [name, rule] : rules.items()) {
    keyword_of(name);
    const bool holds_rules = name == "properties" || name == "definitions" || rule.is_array();
    for (const auto& [key, one] : rule.items()) {
      if (holds_rules && one.is_object()) {
        require_known(one);
      }
    }
    if (!holds_rules && rule.is_object()) {
      require_known(rule);
    }
  }
}

const Json& whole_schema() {
  static const Json schema = [] {
    Json whole = Json::parse(schema_text);
    require_known(whole);
    return whole;
  }();
  return schema;
}

}  // namespace

std::string fault_in(const Json& value, const std::string& part, const std::string& place) {
  return fault_by(whole_schema().at(Json::json_pointer(part)), value, place);
}

}  // namespace crossover::bench
