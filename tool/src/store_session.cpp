#include "store_session.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/detail/not_found.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/projections/operations.hpp>

#include <unistd.h>

#include <algorithm>

namespace stela::tool {
namespace {

[[noreturn]] void refuse(const std::string& what, Invocation& invocation,
                         const DatabasePlace& place) {
  if (invocation.tenant()) {
    throw Exit{not_found, what + "; put the tenant's store back: a backup, or the file"};
  }
  throw Exit{not_found, what + "; '" + invocation.app.name + " migrate --db " +
                            (place.is_on_server() ? "URL" : "FILE") + "' makes one"};
}

Store open(Invocation& invocation, const DatabasePlace& place, const StoreSession::Options& options,
           LogSink& log) {
  if (!place.may_exist()) {
    refuse("there is no database at '" + place.shown() + "'", invocation, place);
  }
  const DatabasePlace::Opening opening{.is_report = options.only_reads && !options.reads_durably,
                                       .is_brief = options.is_brief,
                                       .keys = options.keys,
                                       .log = options.log != nullptr ? options.log : &log,
                                       .metrics = options.metrics};
  try {
    const bool must_read = invocation.access == Invocation::Access::only_reads;
    if (must_read || (options.only_reads && place.is_on_server())) {
      return place.open_to_read(opening);
    }
    return place.open(opening);
  } catch (const NotFound& e) {
    refuse(e.what(), invocation, place);
  } catch (const Error& e) {
    const bool failed_to_write =
        e.code() == ErrorCode::store_failed || e.code() == ErrorCode::store_full;
    if (!options.only_reads || !failed_to_write || !place.find_write_problem()) throw;
  }
  return place.open_to_read(opening);
}

}  // namespace

void LogToStderr::write(const LogEntry& entry) noexcept try {
  if (entry.level < least_) return;
  std::string text;
  if (json_) {
    json::ObjectWriter object{text};
    object.add("ts", to_string(system_clock().now())).add("level", to_string(entry.level));
    object.add("name", in_one_line(entry.name)).add("message", in_one_line(entry.message));
    for (const LogEntry::Field& field : entry.fields) {
      object.add(field.name, in_one_line(field.value));
    }
    object.close();
    text = safe_json(text);
  } else {
    text = to_string(system_clock().now()).substr(0, 19) + "Z ";
    text.append(to_string(entry.level)).append(" ").append(in_one_line(entry.name));
    text.append(": ").append(in_one_line(entry.message));
  }
  text += '\n';
  // A failure to log can't be reported anywhere.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
} catch (const std::exception&) {
}

StoreSession::StoreSession(Invocation& invocation, const Options& options)
    : invocation_{invocation},
      log_{invocation.settings().text("log") == "json"},
      place_{invocation.place()},
      store_{open(invocation, place_, options, log_)} {
  const auto& tenant = invocation.tenant();
  if (!tenant || is_store_of(*tenant, store_)) return;
  throw Exit{failed, "another store stands in the place of tenant '" + tenant->name + "', '" +
                         place_.shown() +
                         "', or another registry has taken it over: put the right "
                         "one back, or 'tenants adopt " +
                         tenant->name + " --take-over'"};
}

const std::string& StoreSession::name() const {
  return place_.is_on_server() ? place_.shown() : sqlite::path(store_);
}

const Partitioner* StoreSession::registered_partitioner() {
  for (const auto& required : StoreOperations{store_}.required_participants()) {
    if (required.name != "outbox") continue;
    const Partitioner* partitioner = find_partitioner(invocation_.app, required.detail);
    if (partitioner != nullptr) return partitioner;
    throw Exit{failed, "this outbox is kept in order by '" + required.detail +
                           "', which only its application knows: use the tool that is built into "
                           "the application"};
  }
  return nullptr;
}

void StoreSession::refuse_without_outbox() const {
  throw Exit{not_found,
             "this database has no outbox; '" + invocation_.app.name + " outbox enable' makes one"};
}

bool StoreSession::has_outbox() {
  return registered_partitioner() != nullptr;
}

Outbox* StoreSession::find_outbox() {
  if (outbox_) return outbox_.get();
  if (const Partitioner* partitioner = registered_partitioner()) {
    outbox_ = std::make_unique<Outbox>(store_, OutboxOptions{.partitioner = partitioner});
  }
  return outbox_.get();
}

const Partitioner& StoreSession::partitioner() {
  for (const auto& required : StoreOperations{store_}.required_participants()) {
    const Partitioner* known = find_partitioner(invocation_.app, required.detail);
    if (required.name == "outbox" && known != nullptr) return *known;
  }
  return by_stream();
}

Outbox& StoreSession::outbox() {
  if (find_outbox() == nullptr) refuse_without_outbox();
  return *outbox_;
}

void StoreSession::prepare_to_append() {
  if (const auto& tenant = invocation_.tenant(); tenant && tenant->state != TenantState::active) {
    throw StoreSuspended{
        "tenant '" + tenant->name + "' is " + std::string{to_string(tenant->state)} + " since " +
        to_string(tenant->since) + ": " + tenant->reason + "; nothing was written"};
  }
  membership_.emplace(store_);
  find_outbox();
  if (invocation_.app.projections) projections();
}

std::vector<std::string> StoreSession::leave_unknown_behind() {
  constexpr std::string_view prefix = "projector:";
  std::vector<std::string> left;
  for (const auto& required : StoreOperations{store_}.required_participants()) {
    if (required.name.substr(0, prefix.size()) != prefix) continue;
    const std::string name = required.name.substr(prefix.size());
    const bool is_known =
        projections_ != nullptr &&
        std::any_of(projections_->registrations().begin(), projections_->registrations().end(),
                    [&](const auto& one) { return one.name == name; });
    if (is_known) continue;
    ProjectionOperations{store_}.leave_behind(name);
    left.push_back(name);
  }
  return left;
}

Projections& StoreSession::projections() {
  if (projections_) return *projections_;
  if (!invocation_.app.projections) {
    throw Exit{failed, "'" + invocation_.app.name +
                           "' has no projectors: an application that embeds stela::tool has, once "
                           "it sets app.projections"};
  }
  projections_ = std::make_unique<Projections>(store_);
  invocation_.app.projections(*projections_);
  return *projections_;
}

OutboxOperations& StoreSession::operations() {
  if (operations_) return *operations_;
  const Partitioner* partitioner = registered_partitioner();
  if (partitioner == nullptr) refuse_without_outbox();
  operations_ = std::make_unique<OutboxOperations>(
      store_, OperatorOptions{.who = invocation_.who(), .partitioner = partitioner});
  return *operations_;
}

void make_tables(Store& store) {
  migrate_outbox(store);
  nats::migrate_inbox(store);
  const Projections projections{store};
}

const Partitioner* find_partitioner(const App& app, std::string_view name) {
  if (by_stream().name() == name) return &by_stream();
  for (const Partitioner* partitioner : app.partitioners) {
    if (partitioner->name() == name) return partitioner;
  }
  return nullptr;
}

}  // namespace stela::tool
