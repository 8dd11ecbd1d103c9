// SPDX-License-Identifier: Apache-2.0
#include "run/peer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "axes/flag.h"
#include "base/say.h"
#include "base/schema.h"
#include "base/times.h"
#include "rows/devices.h"
#include "rows/row.h"

namespace crossover::bench {
namespace {

/// Throws std::invalid_argument where the readers of result files would refuse it.
void require(const Json& value, const std::string& part, const std::string& place) {
  if (const std::string fault = fault_in(value, part, place); !fault.empty()) {
    throw std::invalid_argument(fault);
  }
}

/// As row_name() would name it, whatever it says.
std::string name_told(const Json& configuration) {
  std::string name;
  for (const auto& [key, value] : configuration.items()) {
    name += (name.empty() ? "" : "/" + key + ":") + value.get<std::string>();
  }
  return name;
}

Axis axis_in(const Json& json) {
  Json axis = json;
  axis.emplace("role", to_string(AxisRole::how));
  if (axis.value("values", Json()).empty()) {
    axis.erase("values");
  }
  require(axis, "/definitions/axis", "axes");
  AxisRole role = AxisRole::how;
  for (const AxisRole other : {AxisRole::what, AxisRole::alike}) {
    role = axis["role"] == to_string(other) ? other : role;
  }
  return {.key = json.at("key"),
          .role = role,
          .description = json.at("description"),
          .values = json.value("values", std::vector<std::string>()),
          .unsaid = json.value("unsaid", "")};
}

}  // namespace

Peer::Peer(std::string command, double limit_seconds)
    : command_(std::move(command)), limit_seconds_(limit_seconds) {
  constexpr const char* what = "does not describe itself";
  try {
    described_ = with({}).ask({{"do", "describe"}}, limit_seconds_);
    if (described_.contains("error_message")) {
      refuse(what, described_["error_message"]);
    }
    for (const char* needed : {"program", "libraries", "version"}) {
      if (!described_.contains(needed)) {
        refuse(what, "'" + std::string(needed) + "' is missing");
      }
    }
    require(described_["program"], "/definitions/text", "program");
    require(described_["libraries"], "/definitions/text_map", "libraries");
    program_ = described_["program"];
    libraries_ = described_["libraries"];
    for (const char* told : {"ladders", "ladder_batches"}) {
      own_ladders_[told] = described_.value(told, Json::object());
      require(own_ladders_[told], std::string("/definitions/crossover/properties/") + told, told);
    }
    own_rows_ = described_.value("rows", Json::array());
    std::vector<Axis> own;
    for (const Json& axis : described_.value("axes", Json::array())) {
      own.push_back(axis_in(axis));
    }
    for (const char* told : {"program", "libraries", "axes", "rows", "ladders", "ladder_batches"}) {
      described_.erase(told);
    }
    require({{program_, described_}}, "/definitions/crossover/properties/peers", "");
    add_axes(own);
  } catch (const WorkerEnded& error) {
    refuse(what, error.what());
  } catch (const Json::exception& error) {
    refuse(what, error.what());
  } catch (const std::invalid_argument& error) {
    refuse(what, error.what());
  }
}

void Peer::refuse(const std::string& what, const std::string& why) const {
  throw UsageError("--peer: '" + command_ + "' " + what + ": " + why);
}

bool Peer::has_gpu() const { return described_.contains("gpu") && !described_["gpu"].is_null(); }

void Peer::describe_in(Json& context) const {
  Json& crossover = context["crossover"];
  crossover["peers"][program_] = described_;
  for (const auto& [library, version] : libraries_) {  // what is there stays
    crossover["software"]["libraries"].emplace(library, version);
  }
  for (const auto& [told, ladders] : own_ladders_.items()) {
    for (const auto& [name, own] : ladders.items()) {
      crossover[told].emplace(name, Json(own));
    }
  }
}

/// A setting that must stand when a process begins has a process of its own.
WorkerProcess& Peer::with(const Variables& variables) {
  std::unique_ptr<WorkerProcess>& process = processes_[variables];
  if (!process) {
    process = std::make_unique<WorkerProcess>(
        std::vector<std::string>{"/bin/sh", "-c", "exec " + command_}, variables);
    if (!variables.empty()) {  // what it sets up there belongs before its first row
      try {
        process->ask({{"do", "describe"}}, limit_seconds_);
      } catch (const WorkerEnded& error) {
        refuse("does not describe itself", error.what());
      }
    }
  }
  return *process;
}

void Peer::bring(std::vector<PlannedRow>& plan, const NetworkFacts& networks, Devices& devices,
                 Rows& rows) {
  add_own(own_rows_, plan, networks, devices, rows);
}

void Peer::bring(const RowSpec& work, const NetworkFacts& networks, Devices& devices, Rows& rows) {
  std::vector<PlannedRow> plan;
  add_own(rows_beside(work, row_name(work)), plan, networks, devices, rows);
}

RowSpec Peer::spec_told(const Json& told, const Row& like) const {
  const Json& configuration = told.at("configuration");  // an object of texts
  const std::string what = "has a row '" + name_told(configuration) + "'" +
                           (like.lead.empty() ? "" : " beside " + like.lead) +
                           " that can't be measured";
  for (const auto& [key, text] : configuration.items()) {
    const std::string value = text;
    const auto axis = std::ranges::find(axes(), key, &Axis::key);
    if (axis == axes().end()) {
      refuse(what, "'" + key + "' is no axis of bench's, nor one that it describes");
    }
    if (!axis->values.empty() && !contains(axis->values, value)) {
      refuse(what, "the axis '" + key + "' has no value '" + value + "'");
    }
    if (printable(value) != value) {
      refuse(what, "its " + key + " has a control character");
    }
  }
  const std::string fault = fault_in(configuration, "/definitions/row_configuration", "");
  if (!fault.empty()) {
    refuse(what, fault);
  }
  for (const Axis& axis : axes()) {
    const std::string own = configuration.value(axis.key, axis.unsaid);
    const std::string wanted = axis.read(like.spec);
    if (!like.lead.empty() && axis.role == AxisRole::what && own != wanted) {
      refuse(what, "its " + axis.key + " is '" + own + "' and not '" + wanted + "'");
    }
  }
  try {
    return spec_in(configuration);
  } catch (const std::exception& error) {  // a number that is none
    refuse(what, error.what());
  }
}

void Peer::add(const Json& told, const Row& like, Devices& devices, Rows& rows,
               const std::function<void(const std::string& name, Row& row)>& finish) {
  for (const Json& one : told) {
    Row row = like;
    row.spec = spec_told(one, like);
    const std::string name = row_name(row.spec);
    if (!rows.has(name)) {
      Device* const device = devices.find(row.spec.device.value_or(""));
      row.device = device == nullptr ? &devices.cpu() : device;  // nobody knows a command's
      row.worker = &with(one.value("environment", Variables()));
      finish(name, row);
      rows.add(std::move(row));
    }
  }
}

void Peer::add_own(const Json& own, std::vector<PlannedRow>& plan, const NetworkFacts& networks,
                   Devices& devices, Rows& rows) {
  // Nobody knows how long a network takes that only its program knows.
  constexpr ExpectedSeconds expected{.all = 10, .repetition = 1};
  add(own, {.expected = expected}, devices, rows, [&](const std::string& name, Row& row) {
    const BenchmarkFamily& family = family_of(row.spec);
    row.repetitions = networks.repetitions(family);
    plan.push_back({.name = name, .pass = family.name, .seconds = expected.all});
  });
}

void Peer::add_rows(const PlannedRow& planned, std::vector<PlannedRow>& joined,
                    const NetworkFacts& networks, Devices& devices, Rows& rows) {
  const Row& lead = rows[planned.name];
  const Row like{.spec = lead.spec,
                 .repetitions = lead.repetitions,
                 .min_time_seconds = lead.min_time_seconds,
                 .expected = lead.expected,
                 .lead = planned.name,
                 .network = lead.network,
                 .warnings = lead.warnings};
  const std::string model = lead.spec.model.value_or("");
  const Json told =
      rows_beside(lead.spec, planned.name, model.empty() ? Shape() : networks.sample(model));
  add(told, like, devices, rows, [&](const std::string& name, Row& row) {
    if (!model.empty()) {
      row.network_facts = [facts_of = networks.network_facts, spec = row.spec] {
        return facts_of(spec);
      };
    }
    joined.push_back({.name = name, .pass = planned.pass, .seconds = like.expected.all});
  });
}

Json Peer::rows_beside(const RowSpec& spec, const std::string& name, const Shape& shape) {
  Json request = {{"do", "rows"}, {"configuration", configuration_json(spec)}};
  if (!shape.empty()) {
    request["shape"] = shape;
  }
  try {
    const Json answer = with({}).ask(request, limit_seconds_);
    if (!answer.contains("outcome")) {
      return answer.at("rows");
    }
    refuse("has no rows beside " + name, answer.value("error_message", "no reason given"));
  } catch (const WorkerEnded& error) {
    refuse("does not say which rows it has beside " + name, error.what());
  }
}

void add_peer_rows(const std::vector<std::unique_ptr<Peer>>& peers, std::vector<PlannedRow>& plan,
                   const NetworkFacts& networks, Devices& devices, Rows& rows) {
  std::vector<PlannedRow> joined;
  for (const PlannedRow& planned : plan) {
    joined.push_back(planned);
    for (const std::unique_ptr<Peer>& peer : peers) {
      peer->add_rows(planned, joined, networks, devices, rows);
    }
  }
  plan = std::move(joined);
  for (const std::unique_ptr<Peer>& peer : peers) {
    peer->bring(plan, networks, devices, rows);
  }
}

void check_against_lead(Row& row, const Row& lead) {
  const Json& ours = lead.record.facts;
  Json& theirs = row.record.facts;
  if (row.record.outcome != Outcome::measured || lead.record.outcome != Outcome::measured) {
    return;
  }
  for (const char* loss : {"loss_first_epoch", "loss_first_step"}) {
    if (!ours.contains(loss) || !theirs.contains(loss)) {
      continue;
    }
    constexpr double small_loss = 0.1;  // as in verification: relative to this
    const double here = theirs[loss];
    const double there = ours[loss];
    const double error = std::abs(here - there) / std::max(std::abs(there), small_loss);
    const Json::json_pointer of_losses("/verification/tolerance");
    const double tolerance = theirs.value(of_losses, 0.0) + ours.value(of_losses, 0.0);
    if (!(error <= tolerance)) {
      std::ostringstream text;
      text.precision(6);
      text << loss << " is " << here << ", and " << there << " in " << row.lead
           << ": they differ by " << error << " of it, and the tolerances of both are "
           << tolerance;
      row.record.outcome = Outcome::failed;
      row.record.reason = text.str();
      row.record.not_verified = {{"seconds", median(row.record.seconds())},
                                 {"relative_error", error},
                                 {"tolerance", tolerance}};
      row.record.repetitions.clear();
    } else if (ours.contains("workload")) {
      theirs["workload"] = ours["workload"];
    }
  }
  if (row.record.doubts.empty()) {
    row.record.doubts = lead.record.doubts;
  }
}

}  // namespace crossover::bench
