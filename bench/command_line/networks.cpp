// SPDX-License-Identifier: Apache-2.0
#include "command_line/networks.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <variant>

#include "crossover/dataset.h"
#include "crossover/network_file.h"

namespace crossover::bench {
namespace {

constexpr std::int64_t of_the_data = 0;  // a width that the rows of --data tell

std::vector<std::int64_t> widths_in(const std::string& text) {
  constexpr std::string_view first = "auto,";
  constexpr std::string_view last = ",auto";
  std::string_view inner = text;
  const bool reads_features = inner.starts_with(first);
  inner.remove_prefix(reads_features ? first.size() : 0);
  const bool reads_classes = inner.ends_with(last);
  inner.remove_suffix(reads_classes ? last.size() : 0);
  if (text == "auto,auto") {
    return {of_the_data, of_the_data};
  }
  std::string numbers(inner);
  if (numbers.find(',') == std::string::npos && !numbers.starts_with('-')) {
    std::ranges::replace(numbers, '-', ',');  // as names have them: 784-512-10
  }
  std::vector<std::int64_t> widths = parse_numbers<std::int64_t>("--mlp", numbers, 1, largest_size);
  if (reads_features) {
    widths.insert(widths.begin(), of_the_data);
  }
  if (reads_classes) {
    widths.push_back(of_the_data);
  }
  return widths;
}

std::vector<std::int64_t> widths_of(const NetworkFlags& flags) {
  std::vector<std::int64_t> widths = *flags.mlp;
  if (widths.front() != of_the_data && widths.back() != of_the_data) {
    return widths;
  }
  if (!flags.data) {
    throw UsageError("--mlp: auto is what the rows of --data tell; add --data=FILE.csv");
  }
  try {
    const CsvShape shape = shape_of_csv(*flags.data);
    widths.front() = widths.front() == of_the_data ? shape.features : widths.front();
    widths.back() = widths.back() == of_the_data ? shape.classes : widths.back();
  } catch (const std::runtime_error& error) {
    throw UsageError(std::string("--data: ") + error.what());
  }
  return widths;
}

/// Of activations those that stand between layers.
std::vector<std::pair<std::string, Activation>> activations_between_layers() {
  std::vector<std::pair<std::string, Activation>> named(named_activations.begin(),
                                                        named_activations.end());
  std::erase_if(named, [](const auto& one) { return one.second == Activation::identity; });
  return named;
}

/// As people write them: "cross-entropy".
std::vector<std::pair<std::string, LossFunction>> losses() {
  std::vector<std::pair<std::string, LossFunction>> named(named_losses.begin(), named_losses.end());
  for (auto& [name, loss] : named) {
    std::ranges::replace(name, '_', '-');
  }
  return named;
}

Task custom_mlp(const NetworkFlags& flags) {
  const std::vector<std::int64_t> widths = widths_of(flags);
  std::string name = "mlp";
  for (const std::int64_t width : widths) {
    name.append("-").append(std::to_string(width));
  }
  const Activation activation = flags.activation.value_or(Activation::relu);
  if (activation != Activation::relu) {
    name.append("-").append(name_in(named_activations, activation));
  }
  const LossFunction usual = widths.back() == 1 ? LossFunction::mse : LossFunction::cross_entropy;
  const LossFunction loss = flags.loss.value_or(usual);
  if (loss != LossFunction::cross_entropy) {
    name.append("-").append(name_of(loss));
  }
  try {
    const Model model = mlp(name, widths, activation, loss);
    return {.model = model,
            .rows = 1000,
            .batch = 100,
            .optimizer = SgdOptions{},
            .generate = [model](std::int64_t rows) { return uniform_data(model, rows); }};
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("--mlp: ") + error.what());
  }
}

Task of_file(const std::string& path, double scale) {
  try {
    return read_network(path, scale);
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("--network: ") + error.what());
  }
}

void change_optimizer(Task& task, const NetworkFlags& flags) {
  if (flags.optimizer && name_of(*flags.optimizer) != name_of(task.optimizer)) {
    task.optimizer = *flags.optimizer;  // else the network's own has numbers of its own
  }
  if (flags.learning_rate) {
    std::visit([&](auto& o) { o.learning_rate = *flags.learning_rate; }, task.optimizer);
  }
  if (flags.weight_decay) {
    const std::string name = name_of(task.optimizer);
    if (name != "adamw") {
      throw UsageError("--weight-decay is AdamW's, and " + task.model.name + " trains with " +
                       name + "; add --optimizer=adamw");
    }
    std::get<AdamWOptions>(task.optimizer).weight_decay = *flags.weight_decay;
  }
}

constexpr double largest_rate = 1e30;
constexpr double smallest_scale = 1e-3, largest_scale = 1e3;

}  // namespace

std::vector<Flag> network_flags(NetworkFlags& to) {
  Flag loss = choice(
      "--loss-function", losses(),
      "loss of --mlp: of classes (the default), mean squared error (the default of one output), or "
      "binary cross-entropy with logits; for the last two the last width is a number of outputs, "
      "each with a target",
      to.loss);
  loss.take = [take = loss.take](const std::string& flag, std::string text) {
    std::ranges::replace(text, '_', '-');  // as files write it
    take(flag, text);
  };
  return {
      {"--mlp", "IN,...,CLASSES",
       "a fully connected network of your own, by layer widths: --mlp=784,512,10; "
       "auto as the first or the last takes it from --data: --mlp=auto,32,auto",
       [&to](const std::string& /*flag*/, const std::string& text) { to.mlp = widths_in(text); }},
      {"--network", "FILE.json,...",
       "networks of your own, in files; docs/networks.md has their form, and crossover networks "
       "writes them from PyTorch and ONNX",
       [&to](const std::string& /*flag*/, const std::string& text) { to.files = split(text); }},
      {"--scale", "FACTOR,...",
       "each network of --network with its inner widths times these: --scale=0.25,0.5,1,2",
       [&to](const std::string& flag, const std::string& text) {
         to.scales = parse_numbers<double>(flag, text, smallest_scale, largest_scale);
       }},
      choice("--activation", activations_between_layers(),
             "activation between the layers of --mlp (default: relu)", to.activation),
      std::move(loss),
      choice("--optimizer", named_optimizers(),
             "optimizer (default: the network's own; --mlp: sgd)", to.optimizer),
      {"--lr", "RATE", "learning rate (default: the network's own)",
       number_into(to.learning_rate, 0.0, largest_rate)},
      {"--weight-decay", "RATE",
       "weight decay of AdamW, for weights but not biases (default: 1e-4)",
       number_into(to.weight_decay, 0.0, largest_rate)},
      {"--rows", "N", "rows of generated data of an epoch (default: the network's own number)",
       number_into(to.rows, std::int64_t{1}, largest_size)},
      {"--data", "FILE.csv",
       "train on these rows: numbers, with a whole number in the last column that says the class "
       "(0, 1, ..., or others, which are numbered in their order); a header is optional",
       into(to.data)},
  };
}

std::vector<Task> tasks_for(const NetworkFlags& flags, const std::vector<Task>& own,
                            const std::vector<std::string>& named,
                            const std::vector<std::string>& otherwise) {
  std::vector<Task> tasks;
  if (flags.mlp) {
    tasks.push_back(custom_mlp(flags));
  } else if (flags.activation || flags.loss) {
    throw UsageError(std::string(flags.activation ? "--activation" : "--loss-function") +
                     " describes your own network; give its widths with --mlp=");
  }
  tasks.insert(tasks.end(), own.begin(), own.end());
  if (flags.data && flags.rows) {
    throw UsageError("--rows is for generated data; --data brings its own rows");
  }
  if (flags.data && named.empty() && !flags.bring_one()) {
    throw UsageError(
        "--data needs a network to read it: add --mlp=IN,...,CLASSES or --model=heart");
  }
  for (const std::string& name : named.empty() && !flags.bring_one() ? otherwise : named) {
    try {
      tasks.push_back(find_model(name));
    } catch (const std::invalid_argument& error) {
      throw UsageError(std::string("--model: ") + error.what());
    }
  }
  for (Task& task : tasks) {
    change_optimizer(task, flags);
    task.rows = flags.rows.value_or(task.rows);
  }
  return tasks;
}

OwnNetworks own_networks(const NetworkFlags& flags) {
  if (flags.files.empty() && flags.scales != std::vector<double>{1}) {
    throw UsageError("--scale is of networks in files; name one with --network=FILE.json");
  }
  OwnNetworks own;
  for (const std::string& path : flags.files) {
    std::vector<std::pair<double, std::string>> sizes;
    for (const double scale : flags.scales) {
      own.tasks.push_back(of_file(path, scale));
      sizes.emplace_back(scale, own.tasks.back().model.name);
    }
    if (sizes.size() > 1) {
      std::ranges::sort(sizes);
      const Task plain = of_file(path, 1);
      OwnLadder& ladder = own.ladders.emplace_back(
          OwnLadder{.name = plain.model.name, .networks = {}, .batch = plain.batch});
      for (const auto& [scale, name] : sizes) {
        ladder.networks.push_back(name);
      }
    }
  }
  return own;
}

std::string optimizer_label(const Optimizer& optimizer) {
  std::ostringstream text;
  text << name_of(optimizer);
  std::visit([&](const auto& options) { text << " lr=" << options.learning_rate; }, optimizer);
  const auto* adamw = std::get_if<AdamWOptions>(&optimizer);
  if (adamw != nullptr && adamw->weight_decay != 0) {
    text << " weight_decay=" << adamw->weight_decay;
  }
  return text.str();
}

}  // namespace crossover::bench
