#include "cli/text.hpp"
#include "diagnosis/diagnose.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace stela::tool {
namespace {

using Group = std::vector<const Finding*>;

/// Groups findings of the same trouble, in the order of the first of each group.
std::vector<Group> grouped(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  std::map<std::tuple<Code, std::string, std::string>, std::size_t> places;
  for (const Finding& finding : findings) {
    const auto [place, is_new] =
        places.try_emplace({finding.code, finding.trouble, finding.known}, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&finding);
  }
  return groups;
}

Finding merge(const Group& group) {
  const Finding& first = *group.front();
  Finding all = first;
  all.caused_by.reset();
  if (group.size() == 1) return all;
  std::string subjects;
  for (std::size_t i = 0; i < std::min(group.size(), most_named); ++i) {
    subjects.append(subjects.empty() ? "" : ", ").append(in_one_line(group[i]->subject));
  }
  if (group.size() > most_named) {
    subjects += " and " + std::to_string(group.size() - most_named) + " more";
  }
  all.sentence = subjects + "  " + first.trouble + "; the first: " + first.sentence;
  all.remedy += "; each of the others likewise";
  return all;
}

}  // namespace

std::vector<Finding> in_groups(const std::vector<Finding>& findings) {
  std::vector<Finding> merged;
  for (const Group& group : grouped(findings)) merged.push_back(merge(group));
  return merged;
}

}  // namespace stela::tool
