// SPDX-License-Identifier: Apache-2.0
#include "crossover/network_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "crossover/names.h"
#include "json_members.h"

namespace crossover {
namespace {

using json::Members;
using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 4> width_keys{"out_features", "out_channels", "hidden_size",
                                                "embedding_dim"};

std::int64_t whole(Members& members, const std::string& key, std::int64_t absent) {
  const Json* value = members.find(key);
  if (value == nullptr) {
    return absent;
  }
  members.require(json::is_whole(*value, 1), key, "one of the " + json::whole_from(1));
  return value->get<std::int64_t>();
}

double rate(Members& members, const std::string& key, double absent) {
  const Json* value = members.find(key);
  if (value == nullptr) {
    return absent;
  }
  const bool is_rate = value->is_number() && std::isfinite(value->get<double>());
  members.require(is_rate && value->get<double>() >= 0, key, "a number from 0");
  return value->get<double>();
}

/// Of plain SGD and with momentum, where the file says none.
double careful_rate(const Model& model) {
  const auto magnifies = [](const Layer& layer) {
    return std::holds_alternative<BatchNormLayer>(layer.kind);
  };
  return std::ranges::any_of(model.layers, magnifies)
             ? 0.001  // behind the first update of resnet-18 float32 and float64 still agree
             : 0.01;  // deep networks of images stay finite
}

Optimizer optimizer_in(Members& members, const Model& model) {
  const std::string name = members.find("optimizer") == nullptr ? "sgd" : members.text("optimizer");
  std::optional<Optimizer> optimizer = value_in(named_optimizers(), name);
  members.require(optimizer.has_value(), "optimizer", json::one_of(all_names(named_optimizers())));
  std::visit(
      [&](auto& own) {
        using Own = std::decay_t<decltype(own)>;
        constexpr bool adapts = std::is_same_v<Own, AdamWOptions>;
        own.learning_rate =
            rate(members, "learning_rate", adapts ? own.learning_rate : careful_rate(model));
        if constexpr (adapts) {
          if (name == "adamw") {
            own.weight_decay = rate(members, "weight_decay", own.weight_decay);
          }
        }
      },
      *optimizer);
  return *optimizer;
}

/// Row names and sentences carry it.
bool is_name(const std::string& text) {
  constexpr std::size_t longest = 100;
  return !text.empty() && text.size() <= longest &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
             std::string::npos;
}

void require_that_layers_fit(const Task& task) {
  constexpr std::int64_t rows = 2;  // a batch of one has no variance
  std::int64_t count = 0;
  bool is_frozen = false;
  try {
    const Workload workload = training_epoch(task.model, {.rows = rows, .batch = rows});
    count = parameter_count(workload);
    is_frozen = tensors_of(workload, Role::gradient).empty();
  } catch (const std::overflow_error& error) {
    json::refuse("network '" + task.model.name + "'", error.what());
  }
  if (count == 0) {
    json::refuse("network '" + task.model.name + "'",
                 "none of its layers has parameters, so there is nothing to train; add one that "
                 "has, such as linear");
  }
  if (is_frozen) {
    json::refuse("network '" + task.model.name + "'",
                 "'requires_grad' is false for all of its parameters, so there is nothing to "
                 "train; leave it out of one layer at least");
  }
  if (count > most_parameters_of_a_file) {
    json::refuse("network '" + task.model.name + "'",
                 "it has " + std::to_string(count) +
                     " parameters; a network of a file has at most " +
                     std::to_string(most_parameters_of_a_file));
  }
}

/// The layers of a network by their names, and what each reads.
class Layers {
 public:
  explicit Layers(const Json& layers) {
    std::string before = "input";
    for (const Json& layer : layers) {
      const std::string name = layer.at("name");
      by_name_[name] = &layer;
      reads_[name] = layer.contains("inputs") ? layer.at("inputs").get<std::vector<std::string>>()
                                              : std::vector<std::string>{before};
      before = name;
    }
    last_ = before;
  }

  [[nodiscard]] const std::string& last() const { return last_; }
  [[nodiscard]] const Json& at(const std::string& name) const { return *by_name_.at(name); }
  [[nodiscard]] const std::vector<std::string>& reads(const std::string& name) const {
    return reads_.at(name);
  }
  [[nodiscard]] bool has_width(const std::string& name) const {
    return at(name).contains("tied") ||
           std::any_of(width_keys.begin(), width_keys.end(),
                       [&](const char* key) { return at(name).contains(key); });
  }

 private:
  std::map<std::string, const Json*> by_name_;
  std::map<std::string, std::vector<std::string>> reads_;
  std::string last_;
};

/// The names of layers whose width is the output's: those with a width from which only layers
/// without one lead to it.
std::set<std::string> last_of(const Layers& layers) {
  std::set<std::string> found;
  std::set<std::string> seen;
  std::vector<std::string> open{layers.last()};
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (name == "input" || !seen.insert(name).second) {
      continue;
    }
    if (layers.has_width(name)) {
      found.insert(name);
    } else {
      open.insert(open.end(), layers.reads(name).begin(), layers.reads(name).end());
    }
  }
  return found;
}

/// Whether the last dimension of what the layer gives, or its channels, follows a width that is
/// scaled.
bool follows_a_width(const Layers& layers, const std::set<std::string>& last,
                     const std::string& name) {
  if (name == "input") {
    return false;
  }
  const Json& layer = layers.at(name);
  if (layers.has_width(name)) {
    return !last.contains(name) && !layer.contains("tied");
  }
  const bool is_product = layer.at("type") == "matmul";
  return !(is_product && layer.contains("transpose")) &&
         follows_a_width(layers, last, layers.reads(name).at(is_product ? 1 : 0));
}

Json scaled(Json network, double factor) {
  const Json plain = network;
  const Layers layers(plain.at("layers"));
  const std::set<std::string> last = last_of(layers);
  const auto times = [factor](const Json& width) {
    return std::llround(factor * static_cast<double>(width.get<std::int64_t>()));
  };
  for (Json& layer : network.at("layers")) {
    if (layer["type"] == "as_strided") {
      json::refuse("network '" + plain.at("name").get<std::string>() + "'",
                   "its layer '" + layer.at("name").get<std::string>() +
                       "' (as_strided) has strides of one size, so it can't be scaled; leave out "
                       "--scale, or give a file for each size");
    }
    const bool is_depthwise = layer.contains("groups") && layer["groups"] == layer["out_channels"];
    const std::string name = layer.at("name");
    for (const char* key : width_keys) {
      if (layer.contains(key) && !last.contains(name)) {
        layer[key] = std::max<std::int64_t>(1, times(layer[key]));
      }
    }
    if (is_depthwise) {  // still
      layer["groups"] = layer["out_channels"];
    }
    if (layer["type"] == "slice" && !layer.contains("over_time") &&
        follows_a_width(layers, last, layers.reads(name).front())) {
      const std::int64_t from = layer.contains("from") ? times(layer["from"]) : 0;
      layer["from"] = from;
      layer["to"] = std::max<std::int64_t>(from + 1, times(layer["to"]));
    }
    for (const char* channels : {"front", "back"}) {  // of a pad
      if (layer.contains(channels) && follows_a_width(layers, last, layers.reads(name).front())) {
        layer[channels] = times(layer[channels]);
      }
    }
  }
  std::ostringstream name;
  name << network.at("name").get<std::string>() << 'x' << factor;
  network["name"] = name.str();
  return network;
}

Json parsed(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw std::invalid_argument("there is no file of this name");
  }
  if (std::filesystem::file_size(path, error) > static_cast<std::uintmax_t>(most_bytes_of_a_file)) {
    throw std::invalid_argument("the file is larger than " + std::to_string(most_bytes_of_a_file) +
                                " bytes, as no network is");
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    throw std::invalid_argument("the file cannot be read");
  }
  try {
    return Json::parse(text.str());
  } catch (const Json::exception& broken) {
    const std::string what = broken.what();
    throw std::invalid_argument("it is no JSON: " + what.substr(what.find("] ") + 2));
  }
}

}  // namespace

std::string name_of(const Optimizer& optimizer) {
  if (const auto* adamw = std::get_if<AdamWOptions>(&optimizer)) {
    return adamw->weight_decay == 0 ? "adam" : "adamw";
  }
  return std::holds_alternative<MomentumOptions>(optimizer) ? "momentum" : "sgd";
}

std::vector<std::pair<std::string, Optimizer>> named_optimizers() {
  std::vector<std::pair<std::string, Optimizer>> named;
  for (const Optimizer& one :
       {Optimizer(SgdOptions{}), Optimizer(MomentumOptions{}),
        Optimizer(AdamWOptions{.weight_decay = 0}), Optimizer(AdamWOptions{})}) {
    named.emplace_back(name_of(one), one);
  }
  return named;
}

Json describe(const Task& task) {
  Json json = describe(task.model);
  const std::string name = name_of(task.optimizer);
  Json training{{"rows", task.rows}, {"batch", task.batch}, {"optimizer", name}};
  std::visit([&](const auto& own) { training["learning_rate"] = own.learning_rate; },
             task.optimizer);
  if (name == "adamw") {
    training["weight_decay"] = std::get<AdamWOptions>(task.optimizer).weight_decay;
  }
  json["training"] = std::move(training);
  return json;
}

Task task_from(const Json& json) {
  constexpr std::int64_t batch_of_rows = 100;
  constexpr std::int64_t batch_of_others = 32;
  constexpr std::int64_t batches = 10;
  Task task{.model = model_from(json)};
  const std::string where = "network '" + task.model.name + "'";
  if (!is_name(task.model.name)) {
    json::refuse(where, "its 'name' is to be of letters, digits, '.', '_' and '-', at most 100");
  }
  const Json absent = Json::object();
  Members training(json.contains("training") ? json.at("training") : absent,
                   where + ": 'training'");
  task.batch =
      whole(training, "batch", task.model.reads_plain_rows() ? batch_of_rows : batch_of_others);
  task.rows = whole(training, "rows", batches * task.batch);
  task.optimizer = optimizer_in(training, task.model);
  training.refuse_others();
  require_that_layers_fit(task);
  task.generate = [model = task.model](std::int64_t rows) { return uniform_data(model, rows); };
  return task;
}

Task read_network(const std::string& path, double factor) {
  try {
    Task task = task_from(parsed(path));
    if (factor == 1) {
      return task;
    }
    return task_from(scaled(describe(task), factor));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(path + ": " + error.what());
  }
}

}  // namespace crossover
