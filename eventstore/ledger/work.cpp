#include "ledger/work.hpp"

#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/repository.hpp>

namespace stela::ledger {

void Work::keep(const StoredEvent& event) {
  if (streams_.empty() || *streams_.back() != event.stream) {
    streams_.push_back(std::make_unique<StreamId>(event.stream));
  }
  if (pages_.empty()) pages_.push_back(std::make_unique<EventPage>());
  if (!pages_.back()->add(event, *streams_.back())) {
    pages_.push_back(std::make_unique<EventPage>());
    pages_.back()->grow();
    pages_.back()->add(event, *streams_.back());
  }
  events.push_back(pages_.back()->events().back());
}

void Work::shrink_to(const Extent& extent) noexcept {
  while (events.size() > extent.events) events.pop_back();
  while (snapshots.size() > extent.snapshots) snapshots.pop_back();
}

void fill(Work& work, const AppendRequest& request, const Conventions& conventions) {
  check_append(request, conventions);
  work.request = &request;
  work.metadata = metadata::encode(request.context);
  for (const StreamAppend& append : request.streams) {
    for (const NewEvent& event : append.events) work.bytes += event.payload.size();
  }
}

void write_snapshots(EventStore& store, const Work& work) {
  for (const auto& [stream, snapshot] : work.snapshots) {
    try {
      if (snapshot) {
        store.save_snapshot(stream, *snapshot);
      } else {
        store.drop_snapshot(stream);
      }
    } catch (const std::exception& e) {
      detail::log_snapshot_failure(store.conventions(), stream, e.what());
    }
  }
}

}  // namespace stela::ledger
