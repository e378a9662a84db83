#include "worker/problems.hpp"

#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "diagnosis/diagnose.hpp"

#include <algorithm>
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

/// Who works sees its broker itself.
bool is_seen_by_worker(Code code) {
  return code == Code::outbox_unattended || code == Code::outbox_cut_off ||
         code == Code::worker_cut_off || code == Code::worker_misconfigured;
}

void add_own_broker(const View& view, std::vector<Problem>& problems) {
  const BrokerStatus broker = view.own->done.broker.value_or(BrokerStatus{});
  if (broker.is_connected() || broker.state == BrokerState::connecting) return;
  const bool is_misconfigured = broker.state == BrokerState::misconfigured;
  problems.push_back({Style::bad, "broker " + in_one_line(to_string(broker)),
                      is_misconfigured ? "'" + view.program + " doctor' says what to do"
                                       : std::string{way_to_the_broker}});
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
  std::vector<Finding> findings = diagnose({.at = view.status.at,
                                            .call = view.program + ' ',
                                            .store_problem = view.store_problem,
                                            .outbox = view.status,
                                            .processes = view.processes});
  std::vector<Problem> problems;
  if (view.own) {
    add_own_broker(view, problems);
    std::erase_if(findings, [](const Finding& one) { return is_seen_by_worker(one.code); });
  }
  for (const Group& group : grouped(findings)) problems.push_back(problem_of(group));
  return problems;
}

}  // namespace stela::tool
