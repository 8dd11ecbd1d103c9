// SPDX-License-Identifier: Apache-2.0
// Another program that measures the work of bench's rows, in turn with them: a worker behind the
// same protocol, which also says which rows it has. docs/method/peers.md gives the method.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "axes/axes.h"
#include "crossover/tensor.h"
#include "rows/devices.h"
#include "rows/row.h"
#include "run/plan.h"
#include "worker/worker.h"

namespace crossover::bench {

/// Of the patience with bench's own worker: they compile, with their own compilers.
constexpr double patience_with_peers = 10;

/// What other programs are told of bench's networks, as the families know it.
struct NetworkFacts {
  std::function<Shape(const std::string& model)> sample;  ///< empty: bench has no such network
  std::function<Json(const RowSpec& row)> network_facts;  ///< Row has it
  /// Of each of a family's rows that do no work of bench's; 0: as many as the sweep's.
  std::function<int(const BenchmarkFamily& family)> repetitions;
};

class Peer {
 public:
  /// `command`: as a shell reads it. Takes over the axes that its rows have beside bench's.
  /// UsageError where it does not describe itself. It is given up where nothing is heard of it for
  /// `limit_seconds`.
  Peer(std::string command, double limit_seconds);

  /// Adds what a result file records of it to the file's context.
  void describe_in(Json& context) const;
  [[nodiscard]] bool has_gpu() const;

  /// Adds its rows that do no work of bench's (docs/protocol.md) to `rows` and to the plan.
  void bring(std::vector<PlannedRow>& plan, const NetworkFacts& networks, Devices& devices,
             Rows& rows);

  /// Adds its rows of such a work of its own.
  void bring(const RowSpec& work, const NetworkFacts& networks, Devices& devices, Rows& rows);

  /// Adds its rows that do the work of this one of bench's, and are not there yet, to `rows` and
  /// to `joined`. UsageError where it does not say which these are.
  void add_rows(const PlannedRow& planned, std::vector<PlannedRow>& joined,
                const NetworkFacts& networks, Devices& devices, Rows& rows);

 private:
  using Variables = std::map<std::string, std::string>;

  [[noreturn]] void refuse(const std::string& what, const std::string& why) const;
  WorkerProcess& with(const Variables& variables);
  /// `shape`: of a sample of its network; empty: it has none.
  Json rows_beside(const RowSpec& spec, const std::string& name, const Shape& shape = {});
  /// A row that it told. UsageError where it is none; `like`: see add().
  [[nodiscard]] RowSpec spec_told(const Json& told, const Row& like) const;
  /// Of what it told the rows that are not there yet, each `like` that one, whose lead's work it
  /// does; `finish` is called before one is added.
  void add(const Json& told, const Row& like, Devices& devices, Rows& rows,
           const std::function<void(const std::string& name, Row& row)>& finish);
  void add_own(const Json& own, std::vector<PlannedRow>& plan, const NetworkFacts& networks,
               Devices& devices, Rows& rows);

  std::string command_;
  double limit_seconds_;
  std::string program_;  ///< as its rows' names say it: "pytorch"
  Json described_;
  Json own_rows_, own_ladders_;  ///< of networks that bench does not know
  std::map<std::string, std::string> libraries_;
  std::map<Variables, std::unique_ptr<WorkerProcess>> processes_;
};

/// The rows of all peers, each behind the first row of the plan that does the same work; behind all
/// of them those that do no work of bench's.
void add_peer_rows(const std::vector<std::unique_ptr<Peer>>& peers, std::vector<PlannedRow>& plan,
                   const NetworkFacts& networks, Devices& devices, Rows& rows);

/// The first loss of a peer's row must be that of the row of ours, within the tolerances of both:
/// the row fails where it is not, and has its workload where it is.
void check_against_lead(Row& row, const Row& lead);

}  // namespace crossover::bench
