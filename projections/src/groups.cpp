#include "groups.hpp"

#include "read_ahead.hpp"

#include <map>
#include <memory>

namespace stela::projections {
namespace {

/// From this many events on, filtering is cheaper than reading unwanted events.
constexpr std::int64_t worth_a_filter = 1000;

std::vector<std::string> types_of(Store& store, std::span<Seat* const> seats) {
  std::vector<std::string> types;
  for (const Seat* const seat : seats) {
    const auto& some = seat->registration.event_types;
    types.insert(types.end(), some.begin(), some.end());
  }
  return types_to_read(store, std::move(types));
}

/// False if the caller wants to stop.
bool feed_group(Store& store, Feed& feed, std::span<Seat* const> seats, const AllQuery& query,
                const Pass& pass, FunctionRef<bool()> after_batch) {
  Scan scan{store, query};
  std::unique_ptr<ReadAhead> ahead;
  if (pass.decode_ahead) ahead = std::make_unique<ReadAhead>(scan, seats);
  for (int page = 0; page < pass.pages; ++page) {
    if (ahead ? !ahead->next() : scan.is_done()) return true;
    feed.project(seats, ahead ? ahead->batch() : scan.next());
    if (!after_batch()) return false;
  }
  return true;
}

}  // namespace

void feed_in_groups(Store& store, Feed& feed, std::span<Seat* const> seats, const Pass& pass,
                    FunctionRef<bool()> after_batch) {
  std::map<std::int64_t, std::vector<Seat*>> groups;
  for (Seat* const seat : seats) groups[seat->build.position].push_back(seat);
  std::vector<Seat*> together;
  for (auto group = groups.begin(); group != groups.end(); ++group) {
    std::erase_if(together, [&](Seat* seat) { return seat->build.position != group->first; });
    together.insert(together.end(), group->second.begin(), group->second.end());
    const auto next = std::next(group);
    const std::int64_t end = next != groups.end() ? std::min(next->first, pass.end) : pass.end;
    AllQuery query = pass.query;
    query.from = GlobalSequence{group->first + 1};
    query.to = GlobalSequence{end};
    if (query.event_types.empty() && end - group->first > worth_a_filter) {
      query.event_types = types_of(store, together);
    }
    if (!feed_group(store, feed, together, query, pass, after_batch)) return;
  }
}

}  // namespace stela::projections
