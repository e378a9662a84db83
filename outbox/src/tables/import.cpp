#include "tables/import.hpp"

#include "database/database.hpp"
#include "outbox_sql/logs.hpp"
#include "outbox_sql/losses.hpp"
#include "outbox_sql/messages.hpp"
#include "tables/generations.hpp"
#include "tables/settings.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace stela::outbox {

using database::Connection;

namespace {

constexpr std::size_t most_planned = 200'000;
constexpr std::int64_t most_foreign = 100;
constexpr std::size_t most_applied_examples = 1'000;
/// The most bytes that one transaction appends, unless a single event is larger.
constexpr std::size_t most_bytes = std::size_t{4} * 1024 * 1024;
/// Stands in for a redelivery's number in the log of batches.
constexpr std::int64_t imported = -1;
constexpr std::string_view after_misfit = "an event of its stream before it wasn't imported";
/// Tolerance for different clocks of hosts. Restoring a backup takes longer.
constexpr auto clock_difference = std::chrono::seconds{1};

std::string version_of(const std::string& stream, std::int64_t version) {
  return stream + "@" + std::to_string(version);
}

/// Tracks the next version of each stream while events are judged in recorded order.
/// Threads: one at a time, for one transaction.
class Judge {
 public:
  explicit Judge(Connection& connection) : connection_{connection} {
    auto types = connection.rows(sql::tagged_types{});
    while (types.step()) tagged_.emplace(types.type());
  }

  /// False if it is a copy of another, or the store does have it.
  bool judge(StrayEvent& event) {
    if (event.stream.empty()) return true;
    if (event.fit == Fit::other_store) return true;
    if (!seen_.insert(event.id).second) return false;
    Stream& stream = stream_of(event.stream);
    const std::int64_t version = event.version.value();
    if (version <= stream.stored && id_of(event) == event.id) return false;
    judge(event, stream);
    if (event.fit == Fit::fits) {
      stream.last = version;
      stream.last_at = event.recorded_at;
    } else if (stream.misfit == 0) {
      stream.misfit = version;
    }
    return true;
  }

 private:
  struct Stream {
    /// The last version in the store, the last one including fitting events, and its time.
    std::int64_t stored = 0;
    std::int64_t last = 0;
    Timestamp last_at = Timestamp::min();
    /// The first misfit.
    std::int64_t misfit = 0;
  };

  static void refuse(StrayEvent& event, Fit fit, std::string why) {
    event.fit = fit;
    event.why = std::move(why);
  }

  void judge(StrayEvent& event, const Stream& stream) {
    const std::int64_t version = event.version.value();
    if (event.fit != Fit::fits) return;
    if (version <= stream.stored) {
      return refuse(event, Fit::other_history,
                    "the store has another event as " + version_of(event.stream, version) + ": " +
                        id_of(event).to_string());
    }
    if (stream.misfit > 0) {
      return refuse(event, Fit::after_misfit,
                    version_of(event.stream, stream.misfit) + " before it doesn't fit");
    }
    if (version <= stream.last) {
      return refuse(event, Fit::other_history,
                    "the broker has another event as " + version_of(event.stream, version));
    }
    if (version > stream.last + 1) return refuse(event, Fit::gap, describe_gap(event, stream));
    if (stream.last_at > event.recorded_at + clock_difference) {
      return refuse(event, Fit::other_history,
                    version_of(event.stream, stream.last) + " was recorded after it");
    }
    if (tagged_.contains(event.type)) {
      refuse(event, Fit::tagged, "its type declares tags, and a message has none");
    }
  }

  /// "order-7 is at version 3, and the event is version 5: version 4 wasn't published"
  static std::string describe_gap(const StrayEvent& event, const Stream& stream) {
    const std::int64_t first = stream.last + 1;
    const std::int64_t last = event.version.value() - 1;
    std::string text = event.stream + " is at version " + std::to_string(stream.last) +
                       ", and the event is version " + std::to_string(last + 1) + ": ";
    if (event.published_before.value() > stream.last) {
      return text + "version " + std::to_string(event.published_before.value()) +
             " isn't at the broker";
    }
    if (first == last) return text + "version " + std::to_string(first) + " wasn't published";
    return text + "versions " + std::to_string(first) + " to " + std::to_string(last) +
           " weren't published";
  }

  Stream& stream_of(const std::string& name) {
    const auto [at, is_new] = streams_.try_emplace(name);
    Stream& stream = at->second;
    if (!is_new) return stream;
    auto end = connection_.rows(sql::stream_end{.name = name});
    if (end.step()) {
      stream = {.stored = end.version(), .last = end.version(), .last_at = end.recorded_at()};
    }
    return stream;
  }

  /// The id of the store's event with this version; nil if there is none.
  EventId id_of(const StrayEvent& event) {
    auto row = connection_.rows(
        sql::id_of_version{.name = event.stream, .version = event.version.value()});
    EventId::Bytes bytes{};
    if (!row.step() || row.event_id().size() != bytes.size()) return EventId{};
    std::memcpy(bytes.data(), row.event_id().data(), bytes.size());
    return EventId{bytes};
  }

  Connection& connection_;
  std::set<std::string, std::less<>> tagged_;
  std::unordered_map<std::string, Stream> streams_;
  std::unordered_set<EventId> seen_;
};

bool comes_before(const StrayEvent& a, const StrayEvent& b) noexcept {
  return std::tuple{a.sequence, a.redelivery} < std::tuple{b.sequence, b.redelivery};
}

/// Converts to the stored form, in which an event that begins a correlation doesn't name it.
ParsedEvent parsed(const StoredEvent& event) {
  const std::string own = event.id.to_string();
  return {.stream = event.stream,
          .kind = event.kind,
          .sequence = {},
          .version = event.version,
          .id = event.id,
          .recorded_at = event.recorded_at,
          .correlation = event.correlation == own ? std::string{} : std::string{event.correlation},
          .causation_id = event.causation_id,
          .metadata = std::string{event.metadata},
          .payload = std::string{event.payload},
          .tags = {}};
}

void refuse_participants(Connection& connection) {
  auto others = connection.rows(sql::other_participants{});
  if (!others.step()) return;
  if (others.name() == "suspended") {
    throw StoreSuspended{std::string{others.detail()} + "; nothing was written"};
  }
  throw UsageError{
      "this database requires '" + std::string{others.name()} +
      "' to take part in every append, and an import tells it nothing; if it is an "
      "inline projector, ProjectionOperations::leave_behind lets it catch up afterwards"};
}

}  // namespace

Import::Import(Store& store, const OnProgress& progress)
    : store_{store},
      progress_{progress},
      store_id_{store.id().to_string()},
      known_{store},
      rows_{store.database().make_import()} {
  store_.database().read([&](Connection& connection) {
    const auto settings = find_settings(connection);
    is_shared_ = settings && settings->fence == Fence::none;
    auto rows = connection.rows(sql::partition_numbers{});
    while (rows.step()) partitions_.push_back({static_cast<int>(rows.partition())});
  });
}

void Import::report(std::string_view stage, std::int64_t done, std::int64_t total) const {
  if (progress_) progress_({.stage = stage, .done = done, .total = total});
}

// --- the plan

ImportPlan Import::plan(BrokerArchive& broker) {
  ImportPlan plan;
  std::vector<PartitionId> streams = partitions_;
  if (is_shared_) streams = {PartitionId{}};
  for (const PartitionId partition : streams) {
    known_.begin(is_shared_ ? std::span<const PartitionId>{partitions_}
                            : std::span<const PartitionId>{&partition, 1});
    const Places places = find_strays(broker, partition, plan);
    broker.fetch(partition, places,
                 [&](const BrokerEvent& found) { take(partition, found, plan); });
  }
  judge(plan);
  return plan;
}

/// Ascending places of messages whose events the store lacks.
Import::Places Import::find_strays(BrokerArchive& broker, PartitionId partition, ImportPlan& plan) {
  Places places;
  std::vector<FoundMessage> page;
  std::int64_t read = 0;
  const auto add = [&](const FoundMessage& message) {
    const bool has_room = plan.events.size() + places.size() < most_planned;
    if (has_room) places.push_back(message.broker_sequence);
    plan.is_cut = plan.is_cut || !has_room;
  };
  const auto look_up = [&] {
    const std::vector<std::int64_t> events = known_.find(page);
    for (std::size_t i = 0; i < page.size(); ++i) {
      if (events[i] == 0) add(page[i]);
    }
    read += std::ssize(page);
    page.clear();
    report("reading the broker", read, 0);
  };
  broker.read(partition, [&](const FoundMessage& message) {
    if (!message.is_ours || message.store_id != store_id_) {
      if (++plan.foreign <= most_foreign) add(message);
      return;
    }
    page.push_back(message);
    if (page.size() == known_page) look_up();
  });
  look_up();
  std::sort(places.begin(), places.end());
  return places;
}

void Import::take(PartitionId partition, const BrokerEvent& found, ImportPlan& plan) const {
  StrayEvent& stray = plan.events.emplace_back();
  stray.partition = partition;
  stray.broker_stream = found.broker_stream;
  stray.broker_sequence = found.broker_sequence;
  if (found.event == nullptr) {
    stray.fit = Fit::unreadable;
    stray.why = found.problem;
    // Sorts after all others.
    stray.sequence = GlobalSequence::max();
    return;
  }
  const StoredEvent& event = *found.event;
  stray.stream = event.stream.name();
  stray.version = event.version;
  stray.type = event.type();
  stray.id = event.id;
  stray.recorded_at = event.recorded_at;
  stray.sequence = event.sequence;
  stray.redelivery = found.redelivery;
  stray.payload_bytes = event.payload.size();
  stray.published_before = event.published_before;
  const Codec codec = store_.conventions().codec;
  if (found.store_id != store_id_) {
    stray.fit = Fit::other_store;
    stray.why = "it is of store " + std::string{found.store_id};
  } else if (found.codec != codec) {
    stray.fit = Fit::other_codec;
    stray.why = "its codec is '" + std::string{to_string(found.codec)} + "', and the store's '" +
                std::string{to_string(codec)} + "'";
  }
  report("reading events", std::ssize(plan.events), 0);
}

void Import::judge(ImportPlan& plan) const {
  std::stable_sort(plan.events.begin(), plan.events.end(), comes_before);
  store_.database().read([&](Connection& connection) {
    Judge judge{connection};
    std::erase_if(plan.events, [&](StrayEvent& event) { return !judge.judge(event); });
  });
  plan.fitting = std::count_if(plan.events.begin(), plan.events.end(),
                               [](const StrayEvent& event) { return event.fit == Fit::fits; });
}

// --- the import

AppliedImport Import::apply(const ImportPlan& plan, BrokerArchive& broker,
                            StoredOperations& operations, std::string_view who,
                            const std::stop_token& stop) {
  AppliedImport applied;
  std::vector<const StrayEvent*> planned;
  for (const StrayEvent& event : plan.events) {
    if (event.fit == Fit::fits) planned.push_back(&event);
  }
  for (std::span<const StrayEvent* const> left{planned}; !left.empty();) {
    applied.finished = !stop.stop_requested();
    if (!applied.finished) break;
    std::size_t count = 0;
    std::size_t bytes = 0;
    while (count < std::min<std::size_t>(left.size(), step_messages) &&
           (count == 0 || bytes + left[count]->payload_bytes <= most_bytes)) {
      bytes += left[count++]->payload_bytes;
    }
    std::vector<Misfit> misfits;
    const std::vector<Incoming> incoming = fetch(left.first(count), broker, misfits);
    left = left.subspan(count);
    applied.imported += append(incoming, operations, who, misfits);
    applied.changed += std::ssize(misfits);
    for (Misfit& misfit : misfits) {
      if (applied.examples.size() >= most_applied_examples) break;
      applied.examples.push_back(*misfit.planned);
      applied.examples.back().why = std::move(misfit.why);
    }
    report("import", applied.imported + applied.changed, plan.fitting);
  }
  applied.streams = std::ssize(imported_streams_);
  return applied;
}

/// Reads the planned events with payloads, in order. Leaves out events after a missing one.
std::vector<Import::Incoming> Import::fetch(std::span<const StrayEvent* const> planned,
                                            BrokerArchive& broker,
                                            std::vector<Misfit>& misfits) const {
  std::map<PartitionId, std::map<std::uint64_t, const StrayEvent*>> wanted;
  for (const StrayEvent* const event : planned) {
    wanted[event->partition][event->broker_sequence] = event;
  }
  std::map<const StrayEvent*, Incoming> found;
  for (const auto& [partition, in_stream] : wanted) {
    const auto& events = in_stream;
    Places places;
    for (const auto& [place, event] : events) places.push_back(place);
    broker.fetch(partition, places, [&](const BrokerEvent& message) {
      const StrayEvent* const event = events.at(message.broker_sequence);
      if (message.event == nullptr || message.event->id != event->id) return;
      found.try_emplace(event, Incoming{event, message.stored_at, parsed(*message.event)});
    });
  }
  std::vector<Incoming> incoming;
  Names gone;
  for (const StrayEvent* const event : planned) {
    const auto at = found.find(event);
    if (gone.contains(event->stream)) {
      misfits.push_back({event, std::string{after_misfit}});
    } else if (at == found.end()) {
      misfits.push_back({event, "the broker doesn't have it any more"});
      gone.insert(event->stream);
    } else {
      incoming.push_back(std::move(at->second));
    }
  }
  return incoming;
}

/// Appends in one transaction, after checking the fit again under the lock. Returns how many.
std::int64_t Import::append(std::span<const Incoming> incoming, StoredOperations& operations,
                            std::string_view who, std::vector<Misfit>& misfits) {
  Step step;
  operations.write([&](Connection& connection) {
    step = {.changed_streams = changed_streams_};
    store_.database().forget_caches();
    refuse_participants(connection);
    rows_->settle_tag_types(connection, {});
    step.last = last_event(connection);
    for (auto left = incoming; !left.empty();) left = append_some(connection, left, step);
    if (step.stored.empty()) return;
    operations.note(connection, who, "import", record(connection, step.stored),
                    std::ssize(step.stored));
  });
  changed_streams_ = std::move(step.changed_streams);
  for (const Misfit& misfit : misfits) changed_streams_.insert(misfit.planned->stream);
  misfits.insert(misfits.end(), step.misfits.begin(), step.misfits.end());
  for (const Stored& one : step.stored) imported_streams_.insert(one.planned->stream);
  return std::ssize(step.stored);
}

/// Appends up to the first misfit, and returns the events after it.
std::span<const Import::Incoming> Import::append_some(Connection& connection,
                                                      std::span<const Incoming> incoming,
                                                      Step& step) const {
  std::vector<ParsedEvent> events;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < incoming.size(); ++i) {
    if (step.changed_streams.contains(incoming[i].planned->stream)) continue;
    places.push_back(i);
    events.push_back(incoming[i].event);
    events.back().sequence = GlobalSequence{step.last + std::ssize(events)};
  }
  const EventImport::Outcome outcome = rows_->store(connection, events);
  for (std::size_t i = 0; i < outcome.stored; ++i) {
    const Incoming& one = incoming[places[i]];
    step.stored.push_back({one.planned, one.stored_at, events[i].sequence.value()});
  }
  step.last += static_cast<std::int64_t>(outcome.stored);
  const bool is_all = outcome.stored == events.size();
  const std::size_t end = is_all ? incoming.size() : places[outcome.stored];
  for (const Incoming& one : incoming.first(end)) {
    if (!step.changed_streams.contains(one.planned->stream)) continue;
    step.misfits.push_back({one.planned, std::string{after_misfit}});
  }
  if (is_all) return {};
  step.misfits.push_back({incoming[end].planned, outcome.problem});
  step.changed_streams.insert(incoming[end].planned->stream);
  return incoming.subspan(end + 1);
}

/// Records the events as published, so that no relay learns of them. Returns the log's text.
std::string Import::record(Connection& connection, std::span<const Stored> stored) const {
  const PartitionId first = PartitionId::at(0, current_generation(connection).partition_count);
  std::map<PartitionId, std::int64_t> counts;
  std::vector<std::int64_t> sequences;
  for (const Stored& one : stored) {
    const PartitionId partition = is_shared_ ? first : one.planned->partition;
    const auto place = static_cast<std::int64_t>(one.planned->broker_sequence);
    connection.run(sql::insert_batch{.partition = partition.number,
                                     .last_sequence = one.sequence,
                                     .redelivery = imported,
                                     .first_sequence = one.sequence,
                                     .count = 1,
                                     .now = one.stored_at,
                                     .first_broker = place,
                                     .last_broker = place});
    ++counts[partition];
    sequences.push_back(one.sequence);
  }
  for (const auto& [partition, count] : counts) {
    connection.run(sql::count_imported{.partition = partition.number, .count = count});
  }
  return in_words(sequences) + ", from the broker";
}

}  // namespace stela::outbox
