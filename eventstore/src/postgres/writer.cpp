#include "postgres/writer.hpp"

#include "postgres/doorbell.hpp"

#include <stela/framework/detail/append_check.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace stela::postgres {

namespace {

/// How long a transaction with the order lock waits for another program's lock.
constexpr std::chrono::milliseconds longest_locked{100};

WriteWork& work_of(CommitQueue::Ticket* ticket) {
  return *static_cast<WriteWork*>(ticket);
}

/// Drops a connection that was given up, because its open transaction would keep its locks.
void drop_if_unusable(std::unique_ptr<ServerSession>& session) noexcept {
  if (session != nullptr && !session->connection.is_usable()) session.reset();
}

bool matches(const QueryItem& item, const StreamId& stream, const NewEvent& event) noexcept {
  const auto is_one_of = [](const auto& all, const auto& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  return (item.types.empty() || is_one_of(item.types, event.type)) &&
         std::all_of(item.tags.begin(), item.tags.end(),
                     [&](const Tag& tag) { return tag == stream || is_one_of(event.tags, tag); });
}

/// Whether an event of the append matches the condition. The database can't tell before the event
/// is written.
bool may_break(const AppendRequest& append, const AppendCondition& condition) noexcept {
  const std::vector<QueryItem>& items = condition.query.items;
  return std::any_of(
      append.streams.begin(), append.streams.end(), [&](const StreamAppend& streams) {
        return std::any_of(
            streams.events.begin(), streams.events.end(), [&](const NewEvent& event) {
              return std::any_of(items.begin(), items.end(), [&](const QueryItem& item) {
                return matches(item, streams.stream, event);
              });
            });
      });
}

std::size_t count_events(const AppendRequest& append) noexcept {
  std::size_t count = 0;
  for (const StreamAppend& one : append.streams) count += one.events.size();
  return count;
}

std::size_t count_terms(const Query& query) noexcept {
  std::size_t count = 0;
  for (const QueryItem& item : query.items) count += 1 + item.types.size() + item.tags.size();
  return count;
}

/// How many of the first members fit into one call. A member waits for the next call if an earlier
/// one has its append id, or may break its condition: it must see those writes.
std::size_t count_apart(std::span<CommitQueue::Ticket* const> members) {
  // Limits the search to some milliseconds: long appends and queries aren't worth it.
  std::size_t comparisons_left = 200'000;
  std::set<std::string_view> ids;
  for (std::size_t count = 0; count < members.size(); ++count) {
    const AppendRequest& request = *work_of(members[count]).request;
    if (!request.append_id.empty() && !ids.insert(request.append_id).second) return count;
    if (request.condition == nullptr) continue;
    for (CommitQueue::Ticket* const earlier : members.first(count)) {
      const AppendRequest& append = *work_of(earlier).request;
      const std::size_t comparisons = count_events(append) * count_terms(request.condition->query);
      if (comparisons > comparisons_left || may_break(append, *request.condition)) return count;
      comparisons_left -= comparisons;
    }
  }
  return members.size();
}

}  // namespace

Writer::Writer(const Settings& settings, Sessions& sessions, Reading& reading, KindTable& kinds,
               Durability& durability)
    // The next leader wakes up while the former one waits for the flush.
    : ledger::Writer{*settings.conventions, settings.is_read_only, settings.random, 1},
      settings_{settings},
      lock_timeout_{std::to_string(settings.lock_timeout.count())},
      locked_timeout_{std::to_string(std::min(settings.lock_timeout, longest_locked).count())},
      order_lock_{order_lock(settings.schema)},
      bell_lock_{bell_lock(settings.schema)},
      module_lock_{module_lock(settings.schema)},
      sessions_{sessions},
      reading_{reading},
      kinds_{kinds},
      durability_{durability} {}

namespace {

/// The current thread's innermost one.
thread_local const Writer::Inside* innermost = nullptr;

}  // namespace

Writer::Inside::Inside(const Writer& writer) noexcept
    : writer_{writer}, outer_{std::exchange(innermost, this)} {}

Writer::Inside::~Inside() {
  innermost = outer_;
}

bool Writer::Inside::is_in(const Writer& writer) noexcept {
  const Inside* one = innermost;
  while (one != nullptr && &one->writer_ != &writer) one = one->outer_;
  return one != nullptr;
}

void Writer::run(WriteWork& work) {
  refuse_unless_writable();
  Flight flight;
  try {
    queue_.submit_phases(
        work, [&](Members group) { return execute(group, flight); },
        [&](Members group) { land(flight, group); },
        std::max(settings_.lock_timeout, least_patience));
  } catch (const StoreBusy&) {
    work.error = std::current_exception();
  }
  Findings findings;
  confirm(work, findings);
  if (!work.error) return;
  report_failure(work.error);
  std::rethrow_exception(work.error);
}

void Writer::run(DeferredWrites& batch) noexcept {
  Flight flight;
  const auto lead = [&](Members group) {
    auto left = CommitQueue::Left::nothing;
    batch.in_context(group, [&] { left = execute(group, flight); });
    return left;
  };
  try {
    refuse_unless_writable();
    queue_.submit_phases(
        batch.turn(), lead, [&](Members group) { land(flight, group); },
        std::max(settings_.lock_timeout, least_patience));
  } catch (...) {
    batch.fail(std::current_exception());
  }
  Findings findings;
  for (WriteWork* const work : batch.taken()) {
    confirm(*work, findings);
    if (work->error) report_failure(work->error);
  }
}

void Writer::run_statements(FunctionRef<void(Connection&)> statements, database::Sync sync) {
  WriteWork work;
  work.exclusive = true;
  work.statements = &statements;
  work.sync = sync;
  run(work);
}

ServerSession& Writer::session() {
  // A request to a lost server would leave a commit in doubt.
  if (session_ != nullptr && !session_->connection.is_alive()) session_.reset();
  if (session_ == nullptr) {
    auto opened = sessions_.open();
    if (is_on_lane_) opened->connection.run(sql::set_up_lane{.lock_timeout = lock_timeout_});
    session_ = std::move(opened);
  }
  return *session_;
}

CommitQueue::Left Writer::execute(Members group, Flight& flight) noexcept {
  WriteWork& first = work_of(group.front());
  if (first.statements != nullptr) {
    execute_statements(first);
  } else if (first.exclusive) {
    execute_transaction(first);
  } else {
    execute_appends(group, flight);
  }
  drop_if_unusable(session_);
  return flight.lane != nullptr ? CommitQueue::Left::completion : CommitQueue::Left::nothing;
}

Lane* Writer::find_lane() noexcept {
  if (sessions_.options().is_pooled) return nullptr;
  for (Lane& lane : lanes_) {
    if (!lane.is_busy.exchange(true, std::memory_order_acquire)) return &lane;
  }
  return nullptr;
}

void Writer::execute_appends(Members group, Flight& flight) noexcept {
  flight.lane = find_lane();
  is_on_lane_ = flight.lane != nullptr;
  if (is_on_lane_) std::swap(session_, flight.lane->session);
  flight.deadline = std::chrono::steady_clock::now() + settings_.commit_timeout;
  for (CommitQueue::Ticket* const member : group) work_of(member).confirm_until = flight.deadline;
  // One part at a time: the first call of a round trip takes the order lock, which must not be held
  // while the data of others arrives.
  while (!group.empty()) {
    std::size_t count = 1;
    try {
      count = count_apart(group);
    } catch (...) {
      // Without memory for the search, members go one by one.
    }
    const bool is_last = count == group.size();
    execute_group(group.first(count), is_on_lane_ && is_last ? &flight : nullptr);
    group = group.subspan(count);
  }
  if (is_on_lane_) {
    drop_if_unusable(session_);
    std::swap(session_, flight.lane->session);
  }
  is_on_lane_ = false;
}

void Writer::land(Flight& flight, Members group) noexcept {
  ServerSession* const session = flight.lane->session.get();
  if (flight.pipeline) {
    try {
      StandbyWait standby{session->connection, {sessions_, flight.deadline}};
      flight.pipeline->run_rest("the flush");
      standby.check_confirmed();
      durability_.note(flight.run, flight.sequence);
      for (CommitQueue::Ticket* const member : group) {
        Rest& rest = work_of(member).rest;
        rest.is_durable = !rest.in_doubt && rest.run == flight.run;
      }
      if (flight.is_awaited) ring(session->connection);
    } catch (...) {
      session->connection.give_up();
    }
    flight.pipeline.reset();
    drop_if_unusable(flight.lane->session);
  }
  flight.lane->is_busy.store(false, std::memory_order_release);
  flight.lane = nullptr;
}

void Writer::execute_group(Members members, Flight* flight) noexcept {
  try {
    run_group(members, flight);
  } catch (const StoreBusy&) {
    fail_group(members, std::current_exception());
  } catch (const StoreFull&) {
    fail_group(members, std::current_exception());
  } catch (...) {
    if (members.size() == 1) return fail_group(members, std::current_exception());
    // One member's failure must not affect the others.
    for (std::size_t i = 0; i < members.size(); ++i) execute_group(members.subspan(i, 1), nullptr);
  }
}

void Writer::fail_group(Members members, const std::exception_ptr& error) noexcept {
  bool is_lost = false;
  try {
    std::rethrow_exception(error);
  } catch (const ConnectionLost&) {
    is_lost = true;
    session_.reset();
  } catch (...) {
  }
  for (CommitQueue::Ticket* const member : members) {
    WriteWork& work = work_of(member);
    work.rest.in_doubt = is_lost && !work.rest.group.is_nil();
    if (!work.rest.in_doubt) work.rest = {};
    if (!work.rest.in_doubt) work.error = error;
  }
}

void Writer::run_group(Members members, Flight* flight) {
  constexpr int attempts = 5;
  const auto began = steady_now();
  for (int i = 0; i < attempts; ++i) {
    ServerSession& writing = session();
    check_participants(writing.connection);
    declare_for(members);
    Part part = part_of(members);
    if (!commit_part(writing, part, flight)) {
      epoch_ = {};
      // A restored dump may have replaced the tables.
      sessions_.distrust();
      if (flight == nullptr) {
        writing.find_run();
      } else {
        // Nothing was written, and nobody waits for its flush.
        flight->pipeline.reset();
        writing.connection.give_up();
      }
      continue;
    }
    std::int64_t written = 0;
    for (std::size_t number = 0; number < members.size(); ++number) {
      end_member(work_of(members[number]), part.group, number, part.answer);
      if (part.answer.outcomes[number] == GroupAnswer::appended) ++written;
    }
    report_commit(part.answer.after - part.answer.before, written, began);
    return;
  }
  throw StoreBusy{"who takes part in appends changes again and again; try again"};
}

Writer::Part Writer::part_of(Members members) {
  Part part{members, Group{settings_.clock->now(), data_participant()}};
  for (CommitQueue::Ticket* const member : members) {
    WriteWork& work = work_of(member);
    part.group.add(*work.request, work.metadata, work.outcomes, ids_);
  }
  return part;
}

void Writer::find_undeclared(const AppendRequest& request, Undeclared& all) const {
  for (const StreamAppend& append : request.streams) {
    for (const NewEvent& event : append.events) {
      const bool is_personal = personal_types_.contains(event.type);
      if (!event.declared) {
        if (is_personal) refuse_untyped(event.type);
        tag_facts_.check_carries(event, append.stream);
        continue;
      }
      if (!event.keys.empty() && !is_personal) all.personal.emplace(event.type);
      for (TagFact& fact : tag_facts_.additions(event.type, *event.declared)) {
        all.tags.push_back(std::move(fact));
      }
    }
  }
}

void Writer::declare(Connection& connection, const Undeclared& all) {
  postgres::declare_tags(connection, all.tags);
  if (!all.personal.empty()) add_personal_types(connection, all.personal);
}

void Writer::declare_for(Members members) {
  Undeclared all;
  const auto look = [&] {
    all = {};
    for (CommitQueue::Ticket* const member : members) {
      find_undeclared(*work_of(member).request, all);
    }
  };
  Connection& writing = session().connection;
  try {
    look();
  } catch (const UsageError&) {
    // Another process may have given the category up.
    load_participants(writing);
    look();
  }
  if (all.is_empty()) return;
  Connection::Pipeline pipeline{writing};
  pipeline.add(begin_sql);
  pipeline.add(sql::lock{.lock = order_lock_});
  pipeline.add(sql::end_if_idle{});
  try {
    pipeline.run_all("noting the tags of types");
    declare(writing, all);
    load_participants(writing);
    check_committed(writing.query("COMMIT", {}, "noting the tags of types"));
  } catch (...) {
    epoch_ = {};
    writing.roll_back();
    throw;
  }
}

void Writer::forget_declared() noexcept {
  if (has_declared_) epoch_ = {};
}

bool Writer::settle_tags(Connection& connection, std::span<const TagNeed> needs) {
  // A rollback to a savepoint may have undone known declarations.
  if (epoch_.is_nil()) load_participants(connection);
  std::vector<TagFact> all;
  for (const TagNeed& need : needs) {
    for (TagFact& fact : tag_facts_.additions(need.type, need.declared)) {
      all.push_back(std::move(fact));
    }
  }
  if (all.empty()) return false;
  has_declared_ = true;
  postgres::declare_tags(connection, all);
  load_participants(connection);
  return true;
}

void Writer::declare_tags(std::span<const TagNeed> needs, FunctionRef<void(Connection&)> check) {
  run_statements([&](Connection& connection) {
    load_participants(connection);
    settle_tags(connection, needs);
    check(connection);
    // Read again after the commit.
    epoch_ = {};
  });
}

bool Writer::commit_part(ServerSession& writing, Part& part, Flight* flight) {
  for (std::size_t number = 0; number < part.members.size(); ++number) {
    WriteWork& work = work_of(part.members[number]);
    work.ids = part.group.ids_of(number);
    work.rest = {.run = writing.run(), .group = part.id};
  }
  std::optional<Connection::Pipeline> without_flush;
  Connection::Pipeline& pipeline =
      (flight != nullptr ? flight->pipeline : without_flush).emplace(writing.connection);
  // A single statement is a transaction of its own.
  const bool has_keys = part.group.has_keys();
  const bool is_plain = is_on_lane_ && !has_keys && part.group.is_plain();
  const bool is_pooled = writing.connection.options().is_pooled;
  if (!is_plain) {
    pipeline.add(begin_sql);
    pipeline.add(sql::set_append{.lock_timeout = lock_timeout_});
  }
  if (has_keys) pipeline.add(part.group.guard(order_lock_));
  const std::size_t place = pipeline.size();
  const Group::Call::Own own{order_lock_, bell_lock_, part.id};
  Group::Call call = is_plain ? Group::Call::of_plain(part.group, own, epoch_, writing.run())
                              : Group::Call::of_group(part.group, own, epoch_, writing.run());
  pipeline.add(call.sql, std::move(call.parameters));
  std::optional<Place<sql::server_run>> run;
  std::optional<Place<sql::try_to_lock>> bell;
  if (!is_plain) {
    if (is_pooled) run = pipeline.add(sql::server_run{});
    bell = pipeline.add(sql::try_to_lock{.lock = bell_lock_});
    pipeline.add("COMMIT");
  }
  if (flight != nullptr) {
    pipeline.end_part();
    pipeline.add(sql::flush{});
  }
  try {
    auto results = pipeline.run_all("the append");
    if (!is_plain) check_committed(results.back());
    if (run) learn_run(writing, part.members, run->row(results));
    part.answer = call.answer(std::move(results[place]));
    if (part.answer.is_stale) return false;
    if (bell) {
      part.answer.is_awaited =
          part.answer.after > part.answer.before && !bell->row(results).is_mine();
    }
    if (flight == nullptr) {
      if (part.answer.is_awaited) ring(writing.connection);
    } else {
      flight->is_awaited = part.answer.is_awaited;
      flight->run = writing.run();
      flight->sequence = part.answer.after;
    }
    return true;
  } catch (...) {
    if (flight != nullptr) flight->pipeline.reset();
    writing.connection.roll_back();
    throw;
  }
}

void Writer::learn_run(ServerSession& writing, Members members, const sql::server_run::Row& row) {
  if (!take_run(writing.connection, row)) {
    // It is committed in a run that isn't noted. Settling finds it and makes it durable.
    writing.connection.give_up();
    throw ConnectionLost{"the server was started again behind the pooler"};
  }
  for (CommitQueue::Ticket* const member : members) work_of(member).rest.run = writing.run();
}

void Writer::end_member(WriteWork& work, const Group& group, std::size_t number,
                        const GroupAnswer& answer) noexcept {
  work.rest.wrote = answer.outcomes[number] == GroupAnswer::appended &&
                    (answer.firsts[number] > 0 || !work.request->append_id.empty());
  work.rest.is_unnumbered = answer.firsts[number] == 0 && !work.request->append_id.empty();
  // A conflict or a passed check depends on all earlier events.
  work.rest.sequence = std::max(answer.before, answer.lasts[number]);
  try {
    work.result = group.result_of(number, answer);
    if (!work.wants_events) return;
    group.events_of(number, answer, kinds_, [&](const StoredEvent& event) { work.keep(event); });
  } catch (...) {
    work.error = std::current_exception();
  }
}

}  // namespace stela::postgres
