// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "crossover/names.h"
#include "crossover/network_file.h"
#include "json_members.h"

namespace crossover {

// ---- Out and in

namespace {

using json::is_whole;
using json::Members;
using json::refuse;
using json::whole_from;

using Json = nlohmann::ordered_json;

constexpr const char* input_name = "input";

std::string default_name(std::size_t layer) { return "layer " + std::to_string(layer); }

std::string name_of(const Model& model, std::size_t layer) {
  const std::string& own = model.layers[layer].name;
  return own.empty() ? default_name(layer) : own;
}

class LayerWriter {
 public:
  LayerWriter(Json& json, const Model& model) : json_(json), model_(model) {}

  void type(const char* name) { json_["type"] = name; }
  template <class Member>
  void type(const Member& member, std::initializer_list<std::pair<const char*, Member>> names) {
    for (const auto& [name, value] : names) {
      if (value == member) {
        type(name);
      }
    }
  }
  template <class Value>
  void size(const char* name, const Value& value) {
    json_[name] = written(value);
  }
  template <class Value>
  void size(const char* name, const Value& value, const std::type_identity_t<Value>& absent) {
    if (value != absent) {
      json_[name] = written(value);
    }
  }
  template <class Value>
  void count(const char* name, const Value& value, const std::type_identity_t<Value>& absent) {
    size(name, value, absent);
  }
  void any_count(const char* name, std::int64_t value, std::int64_t absent) {
    size(name, value, absent);
  }
  void sizes(const char* name, const Shape& value) { size(name, value); }
  void steps(const char* name, const Shape& value) { size(name, value); }
  void flag(const char* name, bool value, bool absent) { size(name, value, absent); }
  void number(const char* name, double value) { size(name, value); }
  void number(const char* name, double value, double absent) { size(name, value, absent); }
  void any_number(const char* name, double value, double absent) { size(name, value, absent); }
  void layer(const char* name, LayerNumber value) {
    if (value != no_layer) {
      json_[name] = name_of(model_, static_cast<std::size_t>(value));
    }
  }

 private:
  template <class Value>
  static const Value& written(const Value& value) {
    return value;
  }
  static Json written(const Pair& pair) {
    return pair.is_square() ? Json(pair.down) : Json{pair.down, pair.across};
  }

  Json& json_;
  const Model& model_;
};

/// Values by the names of the layers that give them.
class Values {
 public:
  void add(const std::string& name, const std::string& where) {
    if (!values_.emplace(name, static_cast<Value>(values_.size())).second) {
      refuse(where, "another has the name '" + name + "'");
    }
  }
  [[nodiscard]] Value last() const { return static_cast<Value>(values_.size()) - 1; }
  [[nodiscard]] Value at(const std::string& name, const std::string& where) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      refuse(where, "it reads '" + name + "', which is neither 'input' nor a layer before it");
    }
    return found->second;
  }

 private:
  std::map<std::string, Value> values_{{input_name, 0}};
};

/// The layer before that a member names.
LayerNumber layer_named(Members& members, const Values& values, const std::string& key) {
  const std::string of = members.text(key);
  members.require(of != input_name, key, "the name of a layer before it");
  return values.at(of, members.where()) - 1;
}

/// A list of whole numbers, each at least that.
Shape shape_of(Members& members, const std::string& key, std::int64_t least = 1) {
  const Json& sizes = members.list(
      key, [least](const Json& one) { return is_whole(one, least); }, whole_from(least));
  members.require(sizes.size() <= most_dimensions_of_a_file, key,
                  "a list of at most " + std::to_string(most_dimensions_of_a_file) + " sizes");
  return sizes.get<Shape>();
}

/// Sets a layer where the type is one of its own; else it only learns their names.
class LayerReader {
 public:
  LayerReader(Members& members, const Values& values, std::string type)
      : members_(members), values_(values), type_(std::move(type)) {}

  void type(const char* name) {
    names_.emplace_back(name);
    matches_ = matches_ || type_ == name;
  }
  template <class Member>
  void type(Member& member, std::initializer_list<std::pair<const char*, Member>> names) {
    for (const auto& [name, value] : names) {
      member = type_ == name ? value : member;
      type(name);
    }
  }
  template <class Value>
  void size(const char* name, Value& value) {
    if (matches_) {
      value = whole(name, value, members_.at(name), 1);
    }
  }
  template <class Value>
  void size(const char* name, Value& value, const std::type_identity_t<Value>& absent) {
    read(name, value, absent, [&](const Json& json) { return whole(name, value, json, 1); });
  }
  template <class Value>
  void count(const char* name, Value& value, const std::type_identity_t<Value>& absent) {
    read(name, value, absent, [&](const Json& json) { return whole(name, value, json, 0); });
  }
  void any_count(const char* name, std::int64_t& value, std::int64_t absent) {
    read(name, value, absent, [&](const Json& json) {
      members_.require(is_whole(json, -json::largest_size), name, "a whole number");
      return json.get<std::int64_t>();
    });
  }
  void sizes(const char* name, Shape& value) { list(name, value, 1); }
  void steps(const char* name, Shape& value) { list(name, value, -json::largest_size); }
  void flag(const char* name, bool& value, bool absent) {
    read(name, value, absent, [&](const Json& json) {
      members_.require(json.is_boolean(), name, "true or false");
      return json.get<bool>();
    });
  }
  void number(const char* name, double& value) {
    if (matches_) {
      value = any(name, members_.at(name));
    }
  }
  void number(const char* name, double& value, double absent) {
    read(name, value, absent, [&](const Json& json) {
      members_.require(json.is_number() && json.get<double>() > 0, name, "a number above 0");
      return json.get<double>();
    });
  }
  void any_number(const char* name, double& value, double absent) {
    read(name, value, absent, [&](const Json& json) { return any(name, json); });
  }

  void layer(const char* name, LayerNumber& value) {
    if (matches_ && members_.find(name) != nullptr) {
      value = layer_named(members_, values_, name);
    }
  }

  [[nodiscard]] bool matches() const { return matches_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  template <class Value, class Get>
  void read(const char* name, Value& value, Value absent, const Get& get) {
    if (matches_) {
      const Json* json = members_.find(name);
      value = json == nullptr ? absent : get(*json);
    }
  }
  void list(const char* name, Shape& value, std::int64_t least) {
    if (matches_) {
      value = shape_of(members_, name, least);
    }
  }
  double any(const char* name, const Json& json) const {
    members_.require(json.is_number(), name, "a number");
    return json.get<double>();
  }
  std::int64_t whole(const char* name, std::int64_t /*like*/, const Json& json,
                     std::int64_t least) const {
    members_.require(is_whole(json, least), name, "one of the " + whole_from(least));
    return json.get<std::int64_t>();
  }
  Pair whole(const char* name, const Pair& /*like*/, const Json& json, std::int64_t least) const {
    const auto is_one = [least](const Json& one) { return is_whole(one, least); };
    const bool is_pair =
        json.is_array() && json.size() == 2 && std::all_of(json.begin(), json.end(), is_one);
    members_.require(is_one(json) || is_pair, name,
                     "one of the " + whole_from(least) + ", or two of them, [height, width]");
    return is_pair ? Pair(json[0], json[1]) : Pair(json.get<std::int64_t>());
  }

  Members& members_;
  const Values& values_;
  std::string type_;
  std::vector<std::string> names_;
  bool matches_ = false;
};

/// The first kind from `at` on that has the type; what it then lacks throws. Collects the names of
/// those before it.
template <std::size_t at = 0>
std::optional<LayerKind> layer_of(Members& members, const Values& values, const std::string& type,
                                  std::vector<std::string>& names) {
  if constexpr (at == std::variant_size_v<LayerKind>) {
    return std::nullopt;
  } else {
    using Kind = std::variant_alternative_t<at, LayerKind>;
    Kind layer{};
    LayerReader reader(members, values, type);
    show(layer, reader);
    for (const std::string& one : reader.names()) {  // a function with a fused form has two kinds
      if (std::find(names.begin(), names.end(), one) == names.end()) {
        names.push_back(one);
      }
    }
    return reader.matches() ? std::optional<LayerKind>(layer)
                            : layer_of<at + 1>(members, values, type, names);
  }
}

std::string at_most(const std::string& what) {
  return "a list of at most " + std::to_string(most_layers_of_a_file) + " " + what;
}

void add_layer(Model& model, Values& values, const Json& json) {
  const std::string number = default_name(model.layers.size());
  std::string where = "network '" + model.name + "': " + number;
  Members of_any(json, where);
  const std::string type = of_any.text("type");
  where += " (" + type + ")";
  Members members(json, where);
  static_cast<void>(members.find("type"));
  const std::string name = members.find("name") != nullptr ? members.text("name") : number;
  std::vector<Value> inputs{values.last()};
  if (members.find("inputs") != nullptr) {
    inputs.clear();
    const Json& names = members.list(
        "inputs", [](const Json& one) { return one.is_string(); }, "names of layers");
    members.require(names.size() <= most_layers_of_a_file, "inputs", at_most("names"));
    for (const Json& input : names) {
      inputs.push_back(values.at(input.get<std::string>(), where));
    }
  }
  LayerNumber shared = no_layer;
  if (members.find("shared") != nullptr) {
    shared = layer_named(members, values, "shared");
  }
  bool requires_grad = true;
  if (const Json* is_trained = members.find("requires_grad")) {
    members.require(is_trained->is_boolean(), "requires_grad", "true or false");
    requires_grad = is_trained->get<bool>();
  }
  std::vector<std::string> names;
  const std::optional<LayerKind> layer = layer_of(members, values, type, names);
  if (!layer) {
    std::string all;
    for (const std::string& one : names) {
      all += (all.empty() ? "" : ", ") + one;
    }
    refuse(where, "no layer has this type; there are " + all);
  }
  members.refuse_others();
  model.add(*layer, std::move(inputs));
  model.layers.back().name = name == number ? "" : name;
  model.layers.back().shared = shared;
  model.layers.back().frozen = !requires_grad;
  values.add(name, where);
}

/// What the last layer gives a number for each of.
const char* results_of(LossFunction loss) {
  return loss == LossFunction::cross_entropy ? "classes" : "outputs";
}

LossFunction loss_of(Members& members) {
  const std::optional<LossFunction> loss = value_in(named_losses, members.text("loss"));
  members.require(loss.has_value(), "loss", json::one_of(all_names(named_losses)));
  return *loss;
}

}  // namespace

Json describe(const Model& model) {
  Json json{{"name", model.name},
            {"input", {{"shape", model.sample}, {"type", to_string(model.sample_type)}}},
            {results_of(model.loss), model.classes}};
  if (!model.labels.empty()) {
    json["labels"] = model.labels;
  }
  json["loss"] = name_of(model.loss);
  json["layers"] = Json::array();
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    Json one{{"name", name_of(model, i)}};
    LayerWriter writer(one, model);
    std::visit([&](const auto& kind) { show(kind, writer); }, layer.kind);
    if (layer.inputs != std::vector<Value>{static_cast<Value>(i)}) {
      one["inputs"] = Json::array();
      for (const Value input : layer.inputs) {
        one["inputs"].push_back(input == 0 ? input_name
                                           : name_of(model, static_cast<std::size_t>(input) - 1));
      }
    }
    if (layer.shared != no_layer) {
      one["shared"] = name_of(model, static_cast<std::size_t>(layer.shared));
    }
    if (layer.frozen) {
      one["requires_grad"] = false;
    }
    json["layers"].push_back(std::move(one));
  }
  return json;
}

Model model_from(const Json& json) {
  Members unnamed(json, "a network");
  Model model{.name = unnamed.text("name"), .sample = {}, .layers = {}};
  const std::string where = "network '" + model.name + "'";
  Members members(json, where);
  static_cast<void>(members.find("name"));
  static_cast<void>(members.find("training"));  // network_file.h
  Members input(members.at("input"), where + ": 'input'");
  model.sample = shape_of(input, "shape");
  input.require(!model.sample.empty(), "shape", "a list of one size or more");
  const std::string type = input.text("type");
  input.require(type == to_string(Type::f32) || type == to_string(Type::i32), "type",
                "f32, or i32 of tokens");
  model.sample_type = type == to_string(Type::f32) ? Type::f32 : Type::i32;
  input.refuse_others();
  model.loss = loss_of(members);
  const std::string results = results_of(model.loss);
  const std::int64_t least = model.loss == LossFunction::cross_entropy ? 2 : 1;
  members.require(is_whole(members.at(results), least), results, "one of the " + whole_from(least));
  model.classes = members.at(results).get<std::int64_t>();
  if (members.find("labels") != nullptr) {
    model.labels = shape_of(members, "labels");
  }
  Values values;
  const Json& layers = members.at("layers");
  members.require(layers.is_array() && !layers.empty(), "layers", "a list of one layer or more");
  members.require(layers.size() <= most_layers_of_a_file, "layers", at_most("layers"));
  members.refuse_others();
  for (const Json& layer : layers) {
    add_layer(model, values, layer);
  }
  return model;
}

// ---- The schema of the form, from what the layers say of themselves: layer.h has the words.

namespace {

using Json = nlohmann::ordered_json;

Json whole(std::int64_t least) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", json::largest_size}};
}

Json list_of(Json one, std::size_t least, std::size_t most) {
  return {{"type", "array"}, {"items", std::move(one)}, {"minItems", least}, {"maxItems", most}};
}

Json shape(std::int64_t smallest, std::size_t least = 0) {
  return list_of(whole(smallest), least, most_dimensions_of_a_file);
}

Json text() { return {{"type", "string"}}; }

Json boolean() { return {{"type", "boolean"}}; }

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
  void sizes(const char* name, const Shape& /*value*/) { needs(name, shape(1)); }
  void steps(const char* name, const Shape& /*value*/) { needs(name, shape(-json::largest_size)); }
  void flag(const char* name, bool /*value*/, bool /*absent*/) { members_[name] = boolean(); }
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
                 {"inputs", list_of(text(), 0, most_layers_of_a_file)},
                 {"shared", text()},
                 {"requires_grad", boolean()}};
    members.update(members_);
    return object(std::move(members), required_);
  }

 private:
  static Json of(std::int64_t /*value*/, std::int64_t least) { return whole(least); }
  static Json of(const Pair& /*value*/, std::int64_t least) {
    Json both = list_of(whole(least), 2, 2);
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
              {"$id", "urn:crossover:network"},
              {"title", "A network for bench --network: docs/networks.md"}};
  schema.update(object(
      {{"name", {{"type", "string"}, {"pattern", "^[A-Za-z0-9._-]{1,100}$"}}},
       {"input",
        object({{"shape", shape(1, 1)}, {"type", {{"enum", {"f32", "i32"}}}}}, {"shape", "type"})},
       {"classes", whole(2)},
       {"outputs", whole(1)},
       {"labels", shape(1)},
       {"loss", text()},
       {"layers", list_of({{"anyOf", std::move(layers)}}, 1, most_layers_of_a_file)},
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
