#include "simulation/flawed_log.hpp"

namespace stela::sim {

using mutants::Mutant;

AppendResult FlawedLog::append(const AppendRequest& request) {
  interruption_();
  AppendCondition condition;
  if (request.condition != nullptr) condition = *request.condition;
  const bool is_conditional = request.condition != nullptr && mutant_ != Mutant::no_condition;
  if (mutant_ == Mutant::condition_at_commit) condition.after = log_.standpoint().head;
  if (mutant_ == Mutant::half_a_condition && !condition.query.items.empty()) {
    condition.query.items.resize(1);
  }
  const AppendRequest changed{
      .streams = request.streams,
      .context = request.context,
      .append_id = mutant_ == Mutant::append_id_ignored ? std::string_view{} : request.append_id,
      .condition = is_conditional ? &condition : nullptr};
  AppendResult result = log_.append(changed);
  interruption_();
  return result;
}

EventRange FlawedLog::read(const Query& query, const QueryRange& range) {
  QueryRange changed = range;
  if (mutant_ == Mutant::reads_cut_short) changed.limit = 2;
  return disturbed([&] { return log_.read(query, changed); });
}

std::optional<AppendResult> FlawedLog::find_append(std::string_view append_id) {
  if (mutant_ == Mutant::append_id_ignored) return std::nullopt;
  return disturbed([&] { return log_.find_append(append_id); });
}

}  // namespace stela::sim
