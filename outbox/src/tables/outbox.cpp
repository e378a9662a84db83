#include <stela/framework/error.hpp>
#include <stela/outbox/outbox.hpp>

#include "database/data_participant.hpp"
#include "database/database.hpp"
#include "outbox_sql.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/partitions.hpp"
#include "tables/generations.hpp"
#include "tables/settings.hpp"

#include <string>
#include <utility>

namespace stela {

namespace sql = outbox::sql;
using database::Connection;
using outbox::Settings;

namespace {

[[noreturn]] void refuse(std::string_view what, const std::string& actual,
                         const std::string& wanted) {
  throw UsageError{"this database's outbox has " + std::string{what} + " " + actual + ", and " +
                   wanted + " was asked for; leave the option out to take what the database has"};
}

/// Enqueues publishable events: new ones as a participant, old ones when the outbox is created.
class Enqueuer {
 public:
  explicit Enqueuer(const Partitioner& partitioner) noexcept : partitioner_{partitioner} {}

  std::uint32_t key_of(const PartitionedEvent& event) {
    return PartitionId::hash(partitioner_.key(event, scratch_));
  }

  void enqueue(Connection& connection, const database::DataRow& message) {
    if (partition_count_ == 0) {
      partition_count_ = outbox::current_generation(connection).partition_count;
    }
    const PartitionId partition = PartitionId::of_hash(message.key, partition_count_);
    connection.run(sql::insert_message{
        .partition = partition.number, .sequence = message.sequence, .stream = message.stream});
  }

  void forget() noexcept { partition_count_ = 0; }

  const Partitioner& partitioner() const noexcept { return partitioner_; }

 private:
  const Partitioner& partitioner_;
  int partition_count_ = 0;
  std::string scratch_;
};

void check_settings(Connection& connection, const OutboxOptions& options,
                    const Settings& settings) {
  if (options.fence && *options.fence != settings.fence) {
    refuse("the fence", std::string{to_string(settings.fence)},
           std::string{to_string(*options.fence)});
  }
  if (options.leasing && *options.leasing != settings.leasing) {
    refuse("leasing", settings.leasing ? "on" : "off", *options.leasing ? "on" : "off");
  }
  const int count = outbox::current_generation(connection).partition_count;
  if (options.partition_count && *options.partition_count != count) {
    refuse("a partition_count of", std::to_string(count), std::to_string(*options.partition_count));
  }
}

bool has_publishable(Connection& connection) {
  auto row = connection.rows(sql::has_publishable{});
  row.step();
  return row.is_there();
}

/// Enqueues all publishable events of the store.
void backfill(Connection& connection, database::EventReader& events, Enqueuer& enqueuer) {
  EventPage page;
  page.grow();
  std::int64_t next = 1;
  for (bool more = true; more;) {
    page.clear();
    more = events.fill(connection, next, page);
    for (const StoredEvent& event : page.events()) {
      next = event.sequence.value() + 1;
      if (!event.publishes()) continue;
      auto row = connection.rows(sql::stream_number{.name = event.stream.name()});
      row.step();
      enqueuer.enqueue(connection,
                       {enqueuer.key_of(PartitionedEvent::of(event)), next - 1, row.stream()});
    }
    page.clear();
    events.trim();
  }
}

Settings make_outbox(Connection& connection, database::Database& database,
                     const OutboxOptions& options, Enqueuer& enqueuer) {
  if (const auto settings = outbox::find_settings(connection)) {
    check_settings(connection, options, *settings);
    return *settings;
  }
  const Settings settings{options.fence.value_or(Fence::stream), options.leasing.value_or(true)};
  const bool has_history = has_publishable(connection);
  if (has_history && !options.enable) {
    throw UsageError{
        "this database has publishable events from before it had an outbox; say what becomes of "
        "them: Enable::backfill (--backfill) publishes them, Enable::from_now (--from-now) "
        "doesn't"};
  }
  connection.run(
      sql::insert_settings{.fence = to_string(settings.fence), .leasing = settings.leasing});
  const bool from_now = options.enable == Enable::from_now;
  const std::int64_t first = from_now ? outbox::last_event(connection) + 1 : 1;
  outbox::make_generation(connection, options.partition_count.value_or(1), first);
  if (has_history && !from_now) backfill(connection, *database.make_event_reader(), enqueuer);
  enqueuer.forget();
  return settings;
}

}  // namespace

class Outbox::Participant final : public database::DataParticipant {
 public:
  Participant(Store& the_store, const Partitioner& partitioner) noexcept
      : store{the_store.anchor()}, enqueuer{partitioner} {}

  std::string_view name() const noexcept override { return "outbox"; }
  std::string_view detail() const noexcept override { return enqueuer.partitioner().name(); }

  std::optional<std::uint32_t> key_of(const StreamId& stream, const NewEvent& event,
                                      std::string_view metadata) override {
    if (!event.publishes) return std::nullopt;
    return enqueuer.key_of({stream, event.type, event.schema_version, metadata, event.payload});
  }
  void insert(Connection& connection, const database::DataRow& row) override {
    enqueuer.enqueue(connection, row);
  }

  void forget() noexcept override { enqueuer.forget(); }

  Store& store;
  Enqueuer enqueuer;
  Settings settings;
};

void migrate_outbox(Store& store) {
  store.database().migrate("outbox", sql::migrations, sql::migrations_on_postgres);
}

Outbox::Outbox(Store& store, const OutboxOptions& options)
    : participant_{std::make_unique<Participant>(store, *options.partitioner)} {
  migrate_outbox(store);
  // Tables and registration of the participant commit together, so no append can slip between.
  store.database().attach(*participant_, [&](Connection& connection) {
    participant_->settings =
        make_outbox(connection, store.database(), options, participant_->enqueuer);
  });
}

Outbox::~Outbox() {
  participant_->store.database().detach(*participant_);
}

Store& Outbox::store() const noexcept {
  return participant_->store;
}
const Partitioner& Outbox::partitioner() const noexcept {
  return participant_->enqueuer.partitioner();
}
Fence Outbox::fence() const noexcept {
  return participant_->settings.fence;
}
bool Outbox::leasing() const noexcept {
  return participant_->settings.leasing;
}

int Outbox::partition_count() const {
  int count = 0;
  store().database().read([&](Connection& connection) {
    count = outbox::current_generation(connection).partition_count;
  });
  return count;
}

}  // namespace stela
