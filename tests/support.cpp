// SPDX-License-Identifier: Apache-2.0
#include "support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "crossover/networks.h"
#include "crossover/random.h"
#include "crossover/start.h"

namespace crossover::test {

// ---- Support

double relative_error(const std::vector<double>& got, const std::vector<double>& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference) / (norm > 0 ? std::sqrt(norm) : 1);
}

std::unique_ptr<Program> started(const Backend& backend, const Training& training, int threads) {
  return started(backend, training, {.threads = threads});
}

std::vector<GpuMode> gpu_modes() {
  std::vector<GpuMode> modes;
  const std::vector<std::pair<std::string, Execution>> executions{
      {"eager", Execution::eager},
      {"graph", Execution::graph},
      {"graph_epoch", Execution::graph_epoch}};
  const std::vector<std::pair<std::string, Placement>> placements{
      {"resident", Placement::resident},
      {"pageable", Placement::pageable},
      {"pinned", Placement::pinned},
      {"pinned_async", Placement::pinned_async}};
  for (const auto& [execution_name, execution] : executions) {
    for (const auto& [placement_name, placement] : placements) {
      for (const bool every_step : {false, true}) {
        if (execution == Execution::graph_epoch &&
            (placement != Placement::resident || every_step)) {
          continue;  // these run as graph
        }
        modes.push_back(
            {execution_name + "_" + placement_name + (every_step ? "_each_loss" : ""),
             {.execution = execution, .placement = placement, .loss_every_step = every_step}});
      }
    }
  }
  // The other forms of graphs, and whichever is the fastest.
  modes.push_back(
      {"graph_two_streams", {.execution = Execution::graph, .graph_form = {{.streams = 2}}}});
  modes.push_back(
      {"graph_epoch_two_streams_no_loops",
       {.execution = Execution::graph_epoch, .graph_form = {{.loops = false, .streams = 2}}}});
  modes.push_back(
      {"graph_epoch_fastest", {.execution = Execution::graph_epoch, .graph_form = std::nullopt}});
  return modes;
}

std::unique_ptr<Program> started(const Backend& backend, const Training& training,
                                 const CompileOptions& options) {
  auto program = backend.compile(training.workload, options);
  set_data(*program, training.workload, training.data);
  restart(*program, training.workload);
  return program;
}

std::vector<double> copy(std::span<double> values) { return {values.begin(), values.end()}; }

std::vector<std::string> names_of(const Step& step) {
  std::vector<std::string> names;
  for (const Op& op : step.ops) {
    names.emplace_back(name(op));
  }
  return names;
}

std::vector<double> trained(const Workload& workload, const Dataset& data) {
  Reference reference(workload);
  set_data(reference, data);
  restart(reference);
  reference.run(0, static_cast<std::int64_t>(workload.order.size()));
  std::vector<double> all = copy(reference[find(workload, "loss")]);
  for (const Id id : tensors_of(workload, Role::parameter)) {
    all.insert(all.end(), reference[id].begin(), reference[id].end());
  }
  return all;
}

std::string behind(const std::string& beginning, const std::string& message) {
  EXPECT_TRUE(message.empty() || message.starts_with(beginning)) << message;
  return message.substr(std::min(beginning.size(), message.size()));
}

std::string label(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
std::string label(Precision precision) { return to_string(precision); }
std::string label(Execution execution) {
  return execution == Execution::eager   ? "eager"
         : execution == Execution::graph ? "graph"
                                         : "graph_epoch";
}
std::string label(int threads) { return std::to_string(threads) + "_threads"; }

bool test_all() { return std::getenv("CROSSOVER_TEST_ALL") != nullptr; }

Model small_alexnet() {
  return alexnet(AlexNetR{.image = 12, .channels = {2, 3, 2}, .classes = 3});
}
Model small_alexnet_s() {
  return alexnet(AlexNetS{.image = 63, .channels = {2, 2, 3, 2, 2}, .hidden = 5, .classes = 3});
}
Model small_resnet() {
  return resnet(ResNetR{.blocks = 2, .image = 9, .channels = {2, 3, 4}, .classes = 3});
}
Model small_resnet_s() {
  return resnet(ResNetS{
      .image = 33, .stem = 3, .blocks = {1, 2, 1, 1}, .middle = {1, 2, 2, 3}, .classes = 3});
}
Model small_language_model() { return language_model({.vocabulary = 7, .hidden = 3, .time = 4}); }

Model joined_model() {
  Model model{.name = "joined", .sample = {2, 4, 3}, .classes = 3, .layers = {}};
  const Value a = model.add(ConvolutionLayer{3, {.size = 1}}, {0});
  const Value b = model.add(ConvolutionLayer{2, {.size = 3, .padding = 1}}, {a});
  Value value = model.add(ConcatenateLayer{}, {a, 0, b, a});
  value = model.add(ConvolutionLayer{4, {.size = 1}}, {value});
  const Value mean = model.add(GlobalAveragePoolLayer{}, {value});
  Value gate = model.add(LinearLayer{4}, {mean});
  gate = model.add(ActivationLayer{Activation::sigmoid}, {gate});
  value = model.add(MultiplyLayer{}, {value, gate});
  gate = model.add(AveragePoolLayer{{.size = 3, .stride = 3}}, {value});  // of one pixel
  value = model.add(MultiplyLayer{}, {value, gate});
  value = model.add(MultiplyLayer{}, {value, value});
  value = model.add(FlattenLayer{}, {value});
  value = model.add(MultiplyLayer{}, {value, value});
  model.add(LinearLayer{3}, {model.add(ConcatenateLayer{}, {mean, value, mean})});
  return model;
}

Model upsampled_model() {
  Model model{.name = "upsampled", .sample = {2, 6, 4}, .classes = 24, .loss = LossFunction::mse};
  const Value whole = model.add(ConvolutionLayer{3, {.size = 3, .padding = 1}}, {0});
  const Value small = model.add(MaxPoolLayer{{.size = 2, .stride = 2}}, {whole});
  Value value = model.add(TransposedConvolutionLayer{3, {.size = 2, .stride = 2}}, {small});
  value = model.add(ConcatenateLayer{}, {value, whole});
  const Value larger = model.add(UpsampleLayer{2}, {small});
  value = model.add(ConcatenateLayer{}, {value, larger});
  const Window half{.size = 3, .stride = 2, .padding = 1};
  value = model.add(ConvolutionLayer{4, half}, {value});
  value = model.add(
      TransposedConvolutionLayer{
          .out_channels = 4, .window = half, .output_padding = 1, .groups = 2},
      {value});
  value = model.add(GroupNormLayer{.groups = 2, .epsilon = 1e-2}, {value});
  value = model.add(ActivationLayer{Activation::sigmoid}, {value});
  value = model.add(InterpolateLayer{{9, 3}, true}, {value});
  value = model.add(InterpolateLayer{{6, 4}}, {value});
  model.add(FlattenLayer{}, {model.add(ConvolutionLayer{1, {.size = 1}}, {value})});
  return model;
}

Model line_model() {
  Model model{.name = "line", .sample = {2, 1, 11}, .classes = 3, .layers = {}};
  const Window half{.size = {1, 3}, .stride = {1, 2}, .padding = {0, 1}};
  Value value = model.add(ConvolutionLayer{4, {.size = {1, 5}, .padding = {0, 2}}, false}, {0});
  value = model.add(BatchNormLayer{}, {value});
  const Value whole = model.add(ActivationLayer{}, {value});
  value = model.add(MaxPoolLayer{half}, {whole});
  value = model.add(
      TransposedConvolutionLayer{.out_channels = 4, .window = half, .output_padding = {0, 1}},
      {value});
  value = model.add(AveragePoolLayer{{.size = {1, 2}}}, {value});
  value = model.add(AddLayer{}, {value, whole});
  value = model.add(UpsampleLayer{{4, 1}}, {value});
  value = model.add(ConvolutionLayer{4, {.size = {3, 2}, .stride = {2, 3}, .padding = {1, 0}}},
                    {value});
  value = model.add(ConvolutionLayer{4, {.size = {1, 2}, .dilation = {1, 2}}, true, 4}, {value});
  model.add(LinearLayer{3}, {model.add(GlobalAveragePoolLayer{}, {value})});
  return model;
}

Model padded_model() {
  Model model{.name = "padded", .sample = {2, 5, 4}, .classes = 3, .layers = {}};
  const auto apply = [&model](const auto& function, Value value) {
    return model.add(FunctionLayer<std::decay_t<decltype(function)>>{function}, {value});
  };
  Value value = apply(functions::Affine{.scale = 0.5, .shift = -0.25}, 0);
  value = model.add(PadLayer{.left = 1, .right = 2, .bottom = 1}, {value});
  value = model.add(ConvolutionLayer{4, {.size = 3}}, {value});
  const Value leaky = apply(functions::LeakyRelu{.negative_slope = 0.2}, value);
  const Value wider = model.add(PadLayer{.front = 1, .back = 3}, {leaky});
  value = model.add(PadLayer{.left = -1, .top = -2}, {wider});
  value = apply(functions::Elu{.alpha = 0.5}, value);
  value = model.add(ToSequenceLayer{}, {value});
  value = model.add(LayerNormLayer{.epsilon = 1e-2, .bias = false}, {value});
  value = apply(functions::Softplus{}, value);
  value = model.add(LayerNormLayer{.epsilon = 1e-2, .elementwise_affine = false}, {value});
  value = apply(functions::Sine{}, value);
  value = model.add(LayerNormLayer{.epsilon = 1e-2, .is_rms = true, .elementwise_affine = false},
                    {value});
  value = model.add(GlobalAveragePoolLayer{.over_time = true}, {value});
  const Value mean = model.add(GlobalAveragePoolLayer{}, {wider});
  value = apply(functions::Hardtanh{.min_val = -0.3, .max_val = 0.4}, value);
  model.add(LinearLayer{3}, {model.add(ConcatenateLayer{}, {value, mean})});
  return model;
}

Model strided_model() {
  Model model{.name = "strided", .sample = {4, 4, 6}, .classes = 3, .layers = {}};
  const Value image = model.add(ConvolutionLayer{4, {.size = 3, .padding = 1}}, {0});
  const Value shuffled = model.add(  // its pixels from four channels
      AsStridedLayer{{1, 8, 12}, {4, 2, 6, 2}, {6, 48, 1, 24}}, {image});
  const Value sequence = model.add(AsStridedLayer{{3, 32}, {3, 4, 8}, {1, 24, 3}}, {image});
  Value value = model.add(LinearLayer{6}, {sequence});
  const LayerNumber first = static_cast<LayerNumber>(model.layers.size()) - 1;
  value = model.add(FunctionLayer<functions::Exponential>{},
                    {model.add(ActivationLayer{Activation::tanh}, {value})});
  value = model.add(FunctionLayer<functions::SquareRoot>{}, {value});
  value = model.add(FunctionLayer<functions::Reciprocal>{}, {value});
  const Value turned = model.add(AsStridedLayer{{6, 3}, {6, 3}, {-1, 6}, 5}, {value});
  const Value repeated = model.add(AsStridedLayer{{2, 5, 3}, {2, 5, 3}, {3, 0, 1}, 2}, {turned});
  const Value again = model.add(AsStridedLayer{{3, 32}, {3, 8, 4}, {16, 0, 4}, 1}, {shuffled});
  value = model.add(LinearLayer{6}, {again});
  model.layers.back().shared = first;
  const Value row = model.add(AsStridedLayer{{18}, {18}, {1}}, {value});
  const Value met = model.add(AsStridedLayer{{24}, {4, 3, 2}, {3, -3, 1}, 6}, {row});
  value = model.add(FunctionLayer<functions::Absolute>{}, {row});
  const Value flat = model.add(FlattenLayer{}, {repeated});
  const Value other = model.add(ConvolutionLayer{4, {.size = 3, .padding = 1}}, {image});
  model.layers.back().shared = 0;
  const Value mean = model.add(GlobalAveragePoolLayer{}, {other});
  model.add(LinearLayer{3}, {model.add(ConcatenateLayer{}, {value, met, flat, mean})});
  return model;
}

Model places_model() {
  Model model{.name = "places", .sample = {2, 4, 6}, .classes = 3, .layers = {}};
  Value value = model.add(ConvolutionLayer{5, {.size = 2, .stride = 2}}, {0});
  value = model.add(ClassTokenLayer{}, {model.add(ToSequenceLayer{}, {value})});
  value = model.add(LinearLayer{6}, {model.add(PositionEmbeddingLayer{}, {value})});
  value = model.add(LayerNormLayer{.epsilon = 1e-3, .is_rms = true}, {value});
  const Value mean = model.add(GlobalAveragePoolLayer{.over_time = true}, {value});
  value = model.add(MultiplyLayer{}, {value, mean});
  const Value first = model.add(OnePlaceLayer{}, {value});
  const Value last = model.add(OnePlaceLayer{.is_last = true}, {value});
  const Value turned = model.add(ToImageLayer{}, {value});
  const Value rows = model.add(ToImageLayer{.height = 3, .channels = 7}, {value});
  const Value channels = model.add(GlobalAveragePoolLayer{}, {turned});
  const Value unflat = model.add(ToImageLayer{.height = 3, .channels = 1}, {first});
  const Value places = model.add(GlobalAveragePoolLayer{}, {rows});
  const Value pixels = model.add(FlattenLayer{}, {unflat});
  model.add(LinearLayer{3}, {model.add(ConcatenateLayer{}, {pixels, last, channels, places})});
  return model;
}

Model parts_model() {
  Model model{.name = "parts",
              .sample = {6},
              .sample_type = Type::i32,
              .classes = 2,
              .layers = {},
              .loss = LossFunction::bce};
  Value value = model.add(SliceLayer{.from = 1, .to = 6}, {0});
  value = model.add(EmbeddingLayer{7, 6}, {model.add(SliceLayer{.to = 4}, {value})});
  const Value middle = model.add(SliceLayer{.from = 1, .to = 3, .over_time = true}, {value});
  const Value left = model.add(SliceLayer{.to = 2}, {middle});
  const Value right = model.add(SliceLayer{.from = 2, .to = 6}, {value});
  const Value mean = model.add(GlobalAveragePoolLayer{.over_time = true}, {right});
  value = model.add(EmbeddingLayer{9, 4}, {model.add(SliceLayer{.to = 1}, {0})});
  const Value item = model.add(OnePlaceLayer{}, {value});
  value = model.add(MultiplyLayer{}, {mean, item});
  const Value last = model.add(OnePlaceLayer{.is_last = true}, {left});
  value = model.add(ConcatenateLayer{}, {value, last});
  value = model.add(AddLayer{}, {model.add(SliceLayer{.from = 1, .to = 4}, {value}),
                                 model.add(SliceLayer{.from = 3, .to = 6}, {value})});
  model.add(LinearLayer{2}, {value});
  return model;
}

Model asking_model() {
  Model model{
      .name = "asking", .sample = {4}, .sample_type = Type::i32, .classes = 3, .layers = {}};
  const Value words = model.add(EmbeddingLayer{5, 6}, {0});
  const Value query = model.add(LinearLayer{6, false}, {words});
  const Value key = model.add(LinearLayer{6}, {words});
  Value value = model.add(MatmulLayer{.transpose = true, .heads = 2, .scale = 0.5}, {query, key});
  value = model.add(SoftmaxLayer{.heads = 2, .causal = true}, {value});
  value = model.add(MatmulLayer{.heads = 2}, {value, words});
  value = model.add(GruLayer{5}, {model.add(GruLayer{4}, {value})});
  const Value last = model.add(OnePlaceLayer{.is_last = true}, {value});
  const Value weights =
      model.add(SoftmaxLayer{}, {model.add(MatmulLayer{.transpose = true}, {last, value})});
  const Value mixed = model.add(MatmulLayer{}, {weights, value});
  const Value alike = model.add(MatmulLayer{.transpose = true, .scale = 2}, {mixed, last});
  model.add(LinearLayer{3}, {model.add(ConcatenateLayer{}, {mixed, alike})});
  return model;
}

Model half_frozen(Model model, bool first) {
  model.name += first ? "_first_frozen" : "_second_frozen";
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    Model trial = model;
    trial.layers[i].frozen = true;
    try {
      static_cast<void>(training_epoch(trial, {.rows = 2, .batch = 2}));
    } catch (const std::invalid_argument&) {
      continue;  // it has no parameters of its own
    }
    model.layers[i].frozen = std::exchange(first, !first);
  }
  return model;
}

Model residual_model() {
  Model model{.name = "residual", .sample = {5}, .classes = 3, .layers = {}};
  const Value wide = model.add(LinearLayer{7}, {0});
  const Value active = model.add(ActivationLayer{Activation::sigmoid}, {wide});
  const Value left = model.add(LinearLayer{7}, {active});
  const Value left_active = model.add(ActivationLayer{Activation::relu}, {left});
  const Value right = model.add(LinearLayer{7}, {active});
  const Value sum = model.add(AddLayer{}, {left_active, right});
  const Value joined = model.add(AddLayer{}, {sum, active});
  model.add(LinearLayer{3}, {joined});
  return model;
}

// ---- Expect operation

void expect_operation(const OperationCase& c, Program& program, Precision precision) {
  for (const TensorError& found : errors_of(c, program, precision)) {
    EXPECT_LE(found.error, found.tolerance) << "tensor '" << c.workload[found.id].name << "'";
  }
}

namespace {

bool is_missing(const Unsupported& refusal, const OperationCase& c) {
  return std::string(refusal.what())
      .ends_with(std::string(" backend has no ") + name(c.workload.steps[0].ops[0]) + " yet");
}

}  // namespace

std::string missing(const OperationCase& c, const Backend& backend) {
  try {
    static_cast<void>(backend.compile(c.workload, {.precision = stored_precision(c.workload)}));
  } catch (const Unsupported& refusal) {
    if (is_missing(refusal, c)) {
      return refusal.what();
    }
  }
  return "";
}

std::string expect_operation_or_refusal(const OperationCase& c, const Backend& backend,
                                        const CompileOptions& options) {
  std::unique_ptr<Program> program;
  try {
    program = backend.compile(c.workload, options);
  } catch (const Unsupported& refusal) {
    if (is_missing(refusal, c)) {
      return refusal.what();
    }
    EXPECT_NE(stored_precision(c.workload), Precision::f32) << refusal.what();
    EXPECT_NE(std::string(refusal.what()), "");
    return refusal.what();
  }
  expect_operation(c, *program, options.precision);
  return "";
}

}  // namespace crossover::test
