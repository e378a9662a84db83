// Collects the findings of each part's rules.
#pragma once

#include "diagnosis/diagnose.hpp"

#include <utility>
#include <vector>

namespace stela::tool {

/// Threads: one at a time.
class Findings {
 public:
  /// A finding without a severity gets that of its code.
  void add(Finding finding);
  /// Adds it with the limit's severity for the value, if the value is beyond the limit.
  void add_judged(const Limit& limit, double value, Finding finding);

  std::vector<Finding> take() && { return std::move(found_); }

 private:
  std::vector<Finding> found_;
};

void judge_outbox(const OutboxStatus& status, const Facts& facts, const Tolerance& tolerance,
                  Findings& findings);
void judge_server(const postgres::ServerStatus& server, const Facts& facts, Findings& findings);
void judge_broker(const BrokerLook& broker, const OutboxStatus& status, const Facts& facts,
                  Findings& findings);
void judge_projectors(const Facts& facts, const Tolerance& tolerance, Findings& findings);
void judge_timers(const Facts& facts, const Tolerance& tolerance, Findings& findings);
void judge_consumers(const Facts& facts, Findings& findings);

}  // namespace stela::tool
