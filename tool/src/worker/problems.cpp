#include "worker/problems.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "diagnosis/diagnose.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace stela::tool {
namespace {

using Group = std::vector<const Finding*>;

Style style_of(Severity severity) {
  return severity == Severity::critical ? Style::bad : Style::warning;
}

/// Those of a kind that are in the same trouble, in the order of the first of each.
std::vector<Group> grouped(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  std::map<std::pair<Code, std::string>, std::size_t> places;
  for (const Finding& finding : findings) {
    const auto [place, is_new] = places.try_emplace({finding.code, finding.trouble}, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&finding);
  }
  return groups;
}

Problem problem_of(const Group& group) {
  const Finding& first = *group.front();
  Problem problem{
      .style = style_of(first.severity), .what = first.sentence, .remedy = first.remedy};
  if (group.size() == 1) return problem;
  std::string subjects;
  for (std::size_t i = 0; i < std::min(group.size(), most_named); ++i) {
    subjects.append(subjects.empty() ? "" : ", ").append(in_one_line(group[i]->subject));
  }
  if (group.size() > most_named) {
    subjects += " and " + std::to_string(group.size() - most_named) + " more";
  }
  problem.what = subjects + "  " + first.trouble + "; the first: " + first.sentence;
  problem.remedy += "; each of the others likewise";
  return problem;
}

/// Another finding says the same: that no worker reaches the broker, or which partition the
/// broker isn't set up for.
bool is_said_already(const Finding& finding, const std::vector<Finding>& findings,
                     const OutboxStatus& status) {
  if (finding.code == Code::worker_cut_off) {
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& other) { return other.code == Code::outbox_cut_off; });
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
  const std::vector<Finding> all = diagnose({.at = view.status.at,
                                             .call = view.program + ' ',
                                             .store_problem = view.store_problem,
                                             .outbox = view.status,
                                             .processes = view.processes});
  std::vector<Finding> findings;
  std::copy_if(all.begin(), all.end(), std::back_inserter(findings),
               [&](const Finding& finding) { return !is_said_already(finding, all, view.status); });
  std::vector<Problem> problems;
  for (const Group& group : grouped(findings)) problems.push_back(problem_of(group));
  return problems;
}

}  // namespace stela::tool
