#include "worker/problems.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "description/finding.hpp"
#include "diagnosis/diagnose.hpp"

#include <algorithm>
#include <iterator>

namespace stela::tool {
namespace {

Style style_of(Severity severity) {
  if (severity == Severity::fine) return Style::plain;
  return severity == Severity::critical ? Style::bad : Style::warning;
}

/// True if another finding says the same: that no worker reaches the broker or can write to the
/// database, or which partition the broker isn't set up for.
bool is_said_already(const Finding& finding, const std::vector<Finding>& findings,
                     const OutboxStatus& status) {
  const auto is_found = [&](Code code) {
    return std::any_of(findings.begin(), findings.end(),
                       [&](const Finding& other) { return other.code == code; });
  };
  if (finding.code == Code::worker_cut_off) return is_found(Code::outbox_cut_off);
  if (finding.code == Code::worker_silent || finding.code == Code::partition_lease_expired) {
    return is_found(Code::database_down);
  }
  if (finding.code != Code::worker_misconfigured) return false;
  return std::any_of(status.workers.begin(), status.workers.end(), [&](const WorkerStatus& one) {
    return one.name == finding.subject && is_misconfigured_in_part(one, status);
  });
}

}  // namespace

std::string trouble_of(const PartitionStatus& partition) {
  const auto trouble = find_trouble(partition);
  return trouble ? trouble->trouble : std::string{};
}

Style style_of(const PartitionStatus& partition) {
  const auto trouble = find_trouble(partition);
  return trouble ? style_of(trouble->severity) : Style::plain;
}

std::vector<Problem> problems_of(const View& view) {
  Facts facts = view.beside;
  facts.at = view.status.at;
  facts.call = view.program + ' ';
  facts.store_problem = view.store_problem;
  facts.outbox = view.status;
  const std::vector<Finding> all = diagnose(facts);
  std::vector<Finding> findings;
  std::copy_if(all.begin(), all.end(), std::back_inserter(findings),
               [&](const Finding& finding) { return !is_said_already(finding, all, view.status); });
  std::vector<Problem> problems;
  for (const Finding& one : in_groups(findings)) {
    problems.push_back({.style = style_of(one.severity),
                        .what = one.sentence + age_of(one, facts.at),
                        .remedy = one.known.empty() ? one.remedy : one.known});
  }
  return problems;
}

}  // namespace stela::tool
