#include "chaos/deletions.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace stela::chaos {
namespace {

class Judge {
 public:
  Judge(const std::vector<Outcome>& outcomes, const std::vector<NotedGap>& gaps)
      : outcomes_{outcomes}, gaps_{gaps} {}

  std::vector<std::string> run(const std::set<std::int64_t>& missed) {
    for (const Outcome& each : outcomes_) check_broker(each, missed.contains(each.event));
    for (const NotedGap& gap : gaps_) check_gap(gap);
    check_that_gaps_are_noted();
    return std::move(flaws_);
  }

 private:
  void blame(const Outcome& outcome, const std::string& text) {
    flaws_.push_back("event " + std::to_string(outcome.event) + ' ' + text);
  }

  void check_broker(const Outcome& each, bool is_missed) {
    if (each.is_deleted && each.is_at_broker) blame(each, "was deleted, and sent again unasked");
    if (each.is_deleted && !is_missed) blame(each, "was deleted, and no comparison misses it");
    if (!each.is_deleted && is_missed) blame(each, "is missed by a comparison without a reason");
  }

  static bool covers(const NotedGap& gap, const Outcome& each) {
    return gap.stream == each.stream && gap.after < each.version && each.version <= gap.missing;
  }

  void check_gap(const NotedGap& gap) {
    bool is_of_a_deletion = false;
    for (const Outcome& each : outcomes_) {
      if (!covers(gap, each)) continue;
      is_of_a_deletion = true;
      if (!each.is_deleted) blame(each, "is in a gap, and wasn't deleted");
      if (each.has_effect) blame(each, "is in a gap, and had its effect");
    }
    if (is_of_a_deletion) return;
    flaws_.push_back("a gap of nothing: " + gap.stream + " after " + std::to_string(gap.after));
  }

  void check_that_gaps_are_noted() {
    std::map<std::string, std::int64_t> last_effect;
    for (const Outcome& each : outcomes_) {
      if (each.has_effect) last_effect[each.stream] = each.version;
    }
    for (const Outcome& each : outcomes_) {
      if (!each.is_deleted || each.has_effect) continue;
      // Behind the last one nobody knows that it is missing.
      if (last_effect[each.stream] < each.version) continue;
      const bool is_noted = std::any_of(gaps_.begin(), gaps_.end(),
                                        [&](const NotedGap& gap) { return covers(gap, each); });
      if (!is_noted) blame(each, "was deleted and had no effect, and no gap is noted");
    }
  }

  const std::vector<Outcome>& outcomes_;
  const std::vector<NotedGap>& gaps_;
  std::vector<std::string> flaws_;
};

}  // namespace

std::vector<std::string> flaws_of_deletions(const std::vector<Outcome>& outcomes,
                                            const std::vector<NotedGap>& gaps,
                                            const std::vector<std::int64_t>& missed_by_comparison) {
  return Judge{outcomes, gaps}.run({missed_by_comparison.begin(), missed_by_comparison.end()});
}

}  // namespace stela::chaos
