// SPDX-License-Identifier: Apache-2.0
// Family Gemm: matrix products by themselves, in the sizes that the networks have and in squares.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>

#include "crossover/product.h"
#include "crossover/start.h"
#include "crossover/training.h"
#include "families/families.h"
#include "families/operation_rows.h"

namespace crossover::bench {
namespace {

/// More sets than this, and making them takes longer than measuring.
constexpr std::int64_t most_sets = 4096;

struct GemmPlan {
  ProductSize size;
  std::string label;  ///< what has products of that size
  bool cold = false;
};

bool is_first(Transposes which) { return which == Transposes::tn || which == Transposes::tt; }
bool is_second(Transposes which) { return which == Transposes::nt || which == Transposes::tt; }

Transposes transposes(const ProductSize& size) {
  return size.transpose_a ? (size.transpose_b ? Transposes::tt : Transposes::tn)
                          : (size.transpose_b ? Transposes::nt : Transposes::nn);
}

ProductSize square(std::int64_t n, Transposes which) {
  return {.m = n, .n = n, .k = n, .transpose_a = is_first(which), .transpose_b = is_second(which)};
}

Cost cost_of(const ProductSize& size) { return cost(product_workload(size, 1, 1)); }

// ---- the sizes ----------------------------------------------------------------------------------

/// In the order of first use, each with all its uses.
class Products {
 public:
  void add(const ProductSize& size, const std::string& pass, const std::string& model) {
    const auto [at, is_new] = uses_.try_emplace(size);
    if (is_new) {
      sizes_.push_back(size);
    }
    std::string& models = at->second[pass];
    const std::string last = models.substr(models.rfind(' ') + 1);  // npos + 1 is 0
    if (last != model) {
      models += (models.empty() ? "" : " ") + model;
    }
  }

  [[nodiscard]] std::vector<GemmPlan> plans() const {
    std::vector<GemmPlan> plans;
    for (const ProductSize& size : sizes_) {
      std::string label;
      for (const auto& [pass, models] : uses_.at(size)) {
        label += (label.empty() ? "" : "; ") + pass + ": " + models;
      }
      plans.push_back({.size = size, .label = label});
    }
    return plans;
  }

 private:
  std::vector<ProductSize> sizes_;
  std::map<ProductSize, std::map<std::string, std::string>> uses_;  ///< models by pass
};

/// What one step of the network multiplies.
void add_products(const Task& task, std::int64_t batch, Products& to) {
  const Workload step =
      training_epoch(task.model, {.rows = batch, .batch = batch, .optimizer = task.optimizer});
  for (const Op& op : step.steps.front().ops) {
    for (const OpProduct& product : products_of(step, op)) {
      to.add(product.size, product.pass, task.model.name);
    }
  }
}

/// Of a sweep's networks those of the fully connected ladder: each other would add as many sizes
/// again, which are like the squares.
std::vector<GemmPlan> products_of_networks(const Arguments& arguments) {
  Products products;
  for (const Task& task : arguments.tasks) {
    const bool is_of_ladder = task.model.reads_plain_rows() && !ladder_of(task.model.name).empty();
    if (!is_of_ladder && arguments.tasks.size() > 1 && !arguments.choices.has(&RowSpec::model)) {
      continue;
    }
    for (const std::int64_t batch : batches_of(arguments, task.batch)) {
      add_products(task, std::min(batch, task.rows), products);
    }
  }
  return products.plans();
}

std::vector<GemmPlan> squares(const Sweep& sweep) {
  std::vector<GemmPlan> plans;
  const std::vector<std::int64_t>& transposed = sweep.transposed_squares;
  for (const std::int64_t n : sweep.square_sizes) {
    plans.push_back({.size = square(n, Transposes::nn), .label = "square"});
    if (contains(transposed, n)) {
      plans.push_back({.size = square(n, Transposes::nt), .label = "square"});
      plans.push_back({.size = square(n, Transposes::tn), .label = "square"});
    }
  }
  return plans;
}

// ---- rows ---------------------------------------------------------------------------------------

std::int64_t set_bytes(const ProductSize& size) {
  const Workload one = product_workload(size, 1, 1);
  return footprint_bytes(one, one.steps.front());
}

RowSpec spec_of(const GemmPlan& plan, Precision precision) {
  return {.family = RowFamily::gemm,
          .m = plan.size.m,
          .n = plan.size.n,
          .k = plan.size.k,
          .transpose = transposes(plan.size),
          .precision = precision,
          .cache = plan.cold ? OperandCache::cold : OperandCache::warm};
}

GemmPlan gemm_in(const RowSpec& row) {
  const Transposes transposed = value_of(row, &RowSpec::transpose);
  return {.size = {.m = value_of(row, &RowSpec::m),
                   .n = value_of(row, &RowSpec::n),
                   .k = value_of(row, &RowSpec::k),
                   .transpose_a = is_first(transposed),
                   .transpose_b = is_second(transposed),
                   .type = storage_of(options_of(row).precision)},
          .cold = value_of(row, &RowSpec::cache) == OperandCache::cold};
}

/// Small products are cold only with more sets than can be made; the operands of large ones are
/// read so often that it makes no difference.
bool is_wanted_cold(const GemmPlan& plan, const Device& device, ColdProducts wanted) {
  constexpr std::int64_t largest = 1024;
  const bool small = cold_sets(set_bytes(plan.size), device.cache_bytes) > most_sets;
  const bool large = std::min({plan.size.m, plan.size.n, plan.size.k}) > largest;
  constexpr std::uint64_t one = 512;
  const auto extent = static_cast<std::uint64_t>(plan.size.n);
  ProductSize usual = square(plan.size.n, Transposes::nn);
  usual.type = plan.size.type;
  const bool is_usual = plan.size == usual &&
                        (wanted == ColdProducts::one ? extent == one : std::has_single_bit(extent));
  return !small && !large && (wanted == ColdProducts::every || is_usual);
}

void add_row(const Arguments& arguments, const RowSpec& spec, const std::string& label,
             const Cost& one, Devices& devices, Rows& rows) {
  const GemmPlan plan = gemm_in(spec);
  const Target target = target_of(spec, devices);
  Row row = row_on(target);
  row.label = label;
  const std::int64_t products =
      plan.cold ? cold_sets(set_bytes(plan.size), target.device->cache_bytes) : repeats(one);
  const auto operands = static_cast<double>(set_bytes(plan.size) * (plan.cold ? products : 1));
  set_effort(row, arguments,
             {.flops = static_cast<double>(products) * one.flops,
              .launches = static_cast<double>(products),
              .bytes_prepared = 4 * operands},  // made, as doubles, there and back
             target.options.threads);
  rows.add(std::move(row));
}

}  // namespace

/// Small products are all alike, a start and a wait; on the CPU squares must do.
bool is_gemm_worth_minutes(const Row& row, int /*most_threads*/) {
  constexpr double least = 1e6;  // multiplications
  const bool on_gpu = !row.device->has_threads();
  const auto m = static_cast<double>(value_of(row.spec, &RowSpec::m));
  const auto n = static_cast<double>(value_of(row.spec, &RowSpec::n));
  const auto k = static_cast<double>(value_of(row.spec, &RowSpec::k));
  const bool is_square = m == n && n == k;
  const bool is_plain =
      row.spec.transpose == Transposes::nn && row.spec.cache == OperandCache::warm;
  return is_square ? is_plain || (on_gpu && is_in_f32(row))
                   : on_gpu && is_in_f32(row) && m * n * k >= least;
}

std::unique_ptr<PreparedBenchmark> make_gemm(RowContext& context, const RowSpec& row,
                                             Result& result) {
  const GemmPlan plan = gemm_in(row);
  const Target target = target_of(row, context.devices);
  const ProductSize& size = plan.size;
  if (plan.cold && target.device->cache_bytes == 0) {
    throw Unsupported("the device's cache size is unknown, so no operands can be kept out of it");
  }
  const std::int64_t sets = plan.cold ? cold_sets(set_bytes(size), target.device->cache_bytes) : 1;
  const Cost one = cost_of(size);
  // As doubles, and once more on the way.
  const double copies = 1.5 * sizeof(double) / static_cast<double>(bytes(size.type));
  auto made = std::make_unique<PreparedOperation>(
      product_workload(size, sets, plan.cold ? sets : repeats(one)), target, context.arguments,
      copies * static_cast<double>(set_bytes(size)), "for the operands and their verification");
  for (const Step& step : made->workload().steps) {
    const auto& product = std::get<Gemm>(step.ops.front());
    for (const Id id : {product.a, product.b}) {
      upload(made->program(), made->workload(), id,
             operand_values(elements(made->workload()[id].shape), id));
    }
  }
  made->run();

  constexpr double multiplications = 1e7;  // of all sets
  RowVerification& verified = result.verification;
  verified = {.reference = "float64 product", .unit = "entries"};
  const auto verify = [&](const Gemm& product) {
    const auto values = [&](Id id) { return download(made->program(), made->workload(), id); };
    const ProductVerification of_set =
        verify_product(size, values(product.a), values(product.b), values(product.c),
                       rounding_of(target.options.precision, made->program().facts().arithmetic),
                       multiplications / static_cast<double>(sets));
    verified.compared += of_set.entries;
    verified.of += of_set.entries_of;
    verified.tolerance = of_set.tolerance;
    verified.error = std::max(verified.error, of_set.error);
  };
  verify_or_note(result, [&] {
    for (const Step& step : made->workload().steps) {
      verify(std::get<Gemm>(step.ops.front()));
    }
  });
  made->count(one, target, result);
  result.counters["operand_sets"] = static_cast<double>(sets);
  if (plan.cold && result.minimum_work) {  // nothing stays from one turn to the next
    const std::int64_t beyond_cache = sets * set_bytes(size) - target.device->cache_bytes;
    result.minimum_work->memory_bytes = static_cast<double>(beyond_cache);
  }
  return made;
}

void register_gemms(const Arguments& arguments, Devices& devices, Rows& rows) try {
  std::vector<GemmPlan> plans = products_of_networks(arguments);
  const std::vector<GemmPlan> all_squares = squares(arguments.sweep);
  plans.insert(plans.end(), all_squares.begin(), all_squares.end());
  for (GemmPlan plan : plans) {
    for (const Precision precision : arguments.precisions) {
      plan.size.type = storage_of(precision);
      const Cost one = cost_of(plan.size);
      plan.cold = false;
      for (RowSpec row : operation_rows(arguments, devices, spec_of(plan, precision), one)) {
        add_row(arguments, row, plan.label, one, devices, rows);
        if (is_wanted_cold(plan, device_of(row, devices), arguments.sweep.cold_products)) {
          row.cache = OperandCache::cold;
          add_row(arguments, row, plan.label, one, devices, rows);
        }
      }
    }
  }
} catch (const std::overflow_error& error) {
  throw UsageError("Gemm: " + std::string(error.what()));
}

}  // namespace crossover::bench
