#include "ledger/writer.hpp"

#include <stela/framework/error.hpp>

#include <utility>

namespace stela::ledger {

Writer::Writer(const Conventions& conventions, bool is_read_only, Random* random,
               int groups_of_a_leader)
    : queue_{groups_of_a_leader},
      ids_{random != nullptr ? UuidGenerator{*random} : UuidGenerator{}},
      conventions_{conventions},
      is_read_only_{is_read_only} {}

void Writer::refuse_unless_writable() const {
  owner_.check();
  if (is_read_only_) {
    throw UsageError{"the store was opened read-only; nothing can be written to it"};
  }
  if (is_inside()) {
    throw UsageError{
        "a store was written to from inside its own transaction; save and append through the "
        "Transaction that was handed in"};
  }
}

void Writer::know_schema(std::string_view module, std::size_t migrations) {
  const std::lock_guard lock{schemas_mutex_};
  known_schemas_.insert_or_assign(std::string{module}, static_cast<std::int64_t>(migrations));
}

KnownModules Writer::known_schemas() const {
  const std::lock_guard lock{schemas_mutex_};
  return known_schemas_;
}

void Writer::attach(TransactionParticipant& participant,
                    FunctionRef<void(database::Connection&)> prepare) {
  register_participant(participant, prepare, [&] { participants_.add(participant); });
}

void Writer::attach(database::DataParticipant& participant,
                    FunctionRef<void(database::Connection&)> prepare) {
  register_participant(participant, prepare, [&] {
    check_room_for(participant);
    participants_.add(participant);
  });
}

void Writer::attach_mark(Participant& mark) {
  register_participant(
      mark, [](database::Connection&) {}, [&] { participants_.add(mark); });
}

void Writer::register_participant(const Participant& participant,
                                  FunctionRef<void(database::Connection&)> prepare,
                                  FunctionRef<void()> list) {
  bool is_listed = false;
  const auto attach_it = [&](database::Connection& connection) {
    participants_.refuse_second(participant.name());
    prepare(connection);
    read_participants(connection);
    const bool is_known = participants_.is_required(participant);
    // Read again after the commit.
    distrust();
    if (!is_known) insert_participant(connection, participant);
    is_listed = true;
    list();
  };
  try {
    write(attach_it);
  } catch (...) {
    if (is_listed) detach(participant);
    throw;
  }
}

void Writer::require_mark(const Participant& mark) {
  write([&](database::Connection& connection) {
    delete_participant(connection, mark.name());
    insert_participant(connection, mark);
    distrust();
  });
}

void Writer::detach(const Participant& participant) {
  // A forked child appends nothing with its copy, and destroys the participants.
  if (!owner_.is_this()) return;
  run_between([&] { participants_.remove(participant); });
}

void Writer::forget_participant(std::string_view name) {
  write([&](database::Connection& connection) {
    delete_participant(connection, name);
    distrust();
  });
}

std::chrono::steady_clock::time_point Writer::steady_now() const {
  return conventions_.clock->steady_now();
}

void Writer::report_commit(std::int64_t events, std::int64_t written,
                           std::chrono::steady_clock::time_point began) const noexcept try {
  if (events == 0) return;
  MetricSink& metrics = *conventions_.metrics;
  const auto took = steady_now() - began;
  metrics.count("stela_store_commits_total", 1, {});
  metrics.count("stela_store_writes_total", written, {});
  metrics.count("stela_store_events_total", events, {});
  metrics.observe("stela_store_commit_seconds", std::chrono::duration<double>{took}.count(), {});
} catch (...) {
  // The commit counts, even if metrics fail.
}

void Writer::report_failure(const std::exception_ptr& error) const noexcept try {
  std::rethrow_exception(error);
} catch (const Error& e) {
  conventions_.metrics->count("stela_store_failed_writes_total", 1,
                              {{"error", to_string(e.code())}});
} catch (...) {
  // The error comes from the caller's code, so it isn't counted.
}

Writer::Appending::Appending(Writer& writer) : writer_{writer} {
  if (std::exchange(writer_.appending_, true)) {
    throw UsageError{"a transaction participant appended events; it may only write its own tables"};
  }
}

}  // namespace stela::ledger
