// SPDX-License-Identifier: Apache-2.0
// From what the layers say of themselves: layer.h has the words.
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "crossover/names.h"
#include "crossover/network_file.h"
#include "json_members.h"

namespace crossover {
namespace {

using Json = nlohmann::ordered_json;

Json whole(std::int64_t least) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", json::largest_size}};
}

Json list_of(Json one, std::int64_t least) {
  return {{"type", "array"}, {"items", std::move(one)}, {"minItems", least}};
}

Json text() { return {{"type", "string"}}; }

/// With these members and no others.
Json object(Json members, Json required) {
  return {{"type", "object"},
          {"properties", std::move(members)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

class LayerSchema {
 public:
  void type(const char* name) { types_.push_back(name); }
  template <class Member>
  void type(const Member& /*member*/, std::initializer_list<std::pair<const char*, Member>> names) {
    for (const auto& [name, value] : names) {
      type(name);
    }
  }
  template <class Value>
  void size(const char* name, const Value& value) {
    needs(name, of(value, 1));
  }
  template <class Value, class Absent>
  void size(const char* name, const Value& value, const Absent& /*absent*/) {
    members_[name] = of(value, 1);
  }
  template <class Value, class Absent>
  void count(const char* name, const Value& value, const Absent& /*absent*/) {
    members_[name] = of(value, 0);
  }
  void any_count(const char* name, std::int64_t /*value*/, std::int64_t /*absent*/) {
    members_[name] = whole(-json::largest_size);
  }
  void sizes(const char* name, const Shape& /*value*/) { needs(name, list_of(whole(1), 0)); }
  void steps(const char* name, const Shape& /*value*/) {
    needs(name, list_of(whole(-json::largest_size), 0));
  }
  void flag(const char* name, bool /*value*/, bool /*absent*/) {
    members_[name] = {{"type", "boolean"}};
  }
  void number(const char* name, double /*value*/) { needs(name, {{"type", "number"}}); }
  void number(const char* name, double /*value*/, double /*absent*/) {
    members_[name] = {{"type", "number"}, {"exclusiveMinimum", 0}};
  }
  void any_number(const char* name, double /*value*/, double /*absent*/) {
    members_[name] = {{"type", "number"}};
  }
  void layer(const char* name, LayerNumber /*value*/) { members_[name] = text(); }

  [[nodiscard]] Json made() const {
    Json members{{"name", text()},
                 {"type", {{"enum", types_}}},
                 {"inputs", list_of(text(), 0)},
                 {"shared", text()}};
    members.update(members_);
    return object(std::move(members), required_);
  }

 private:
  static Json of(std::int64_t /*value*/, std::int64_t least) { return whole(least); }
  static Json of(const Pair& /*value*/, std::int64_t least) {
    Json both = list_of(whole(least), 2);
    both["maxItems"] = 2;
    return {{"anyOf", {whole(least), std::move(both)}}};
  }
  void needs(const char* name, Json member) {
    members_[name] = std::move(member);
    required_.push_back(name);
  }

  Json types_ = Json::array();
  Json members_ = Json::object();
  Json required_ = Json::array({"type"});
};

template <std::size_t at = 0>
void add_layers(Json& to) {
  if constexpr (at < std::variant_size_v<LayerKind>) {
    std::variant_alternative_t<at, LayerKind> layer{};
    LayerSchema schema;
    show(layer, schema);
    to.push_back(schema.made());
    add_layers<at + 1>(to);
  }
}

}  // namespace

Json network_schema() {
  Json layers = Json::array();
  add_layers(layers);
  Json classes = Json::array();
  Json outputs = Json::array();
  for (const auto& [name, loss] : named_losses) {
    (loss == LossFunction::cross_entropy ? classes : outputs).push_back(name);
  }
  const auto with = [](const char* results, const Json& losses) {
    return Json{{"properties", {{"loss", {{"enum", losses}}}}}, {"required", {results}}};
  };
  const Json rate{{"type", "number"}, {"minimum", 0}};
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", "A network for bench --network: docs/networks.md"}};
  schema.update(object(
      {{"name", {{"type", "string"}, {"pattern", "^[A-Za-z0-9._-]{1,100}$"}}},
       {"input", object({{"shape", list_of(whole(1), 1)}, {"type", {{"enum", {"f32", "i32"}}}}},
                        {"shape", "type"})},
       {"classes", whole(2)},
       {"outputs", whole(1)},
       {"labels", list_of(whole(1), 0)},
       {"loss", text()},
       {"layers", list_of({{"anyOf", std::move(layers)}}, 1)},
       {"training", object({{"rows", whole(1)},
                            {"batch", whole(1)},
                            {"optimizer", {{"enum", all_names(named_optimizers())}}},
                            {"learning_rate", rate},
                            {"weight_decay", rate}},
                           Json::array())}},
      {"name", "input", "loss", "layers"}));
  schema["oneOf"] = Json::array({with("classes", classes), with("outputs", outputs)});
  return schema;
}

}  // namespace crossover
